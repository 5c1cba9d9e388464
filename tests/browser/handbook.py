"""A small travel handbook, asked twice: before and after somebody added a page that pushes others away."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evaltrack import Response, Source
from evaltrack.records import Question
from tests.conftest import REPO

ASKED = list(map(tuple, json.loads((REPO / "tests/data/handbook.json").read_text(encoding="utf-8"))))
"""Id, domain, difficulty, question, chunk and answer of each question."""

NEW_PAGE = "news#summer"
PUSHED = frozenset({"5", "6", "lead time", "50 % off?", "7"})
EDITED, GONE, LOWER, FAILED = "visa/entry", frozenset({"größe-ü", "日本"}), frozenset({"12", "13"}), "a#b&c=d"
MENDED = frozenset({"15", "16"})
FLIPPED = [*PUSHED, EDITED, *GONE]
"""What goes from pass to fail."""
CHUNKS = [asked[4] for asked in ASKED]


def golden_file(folder: Path) -> Path:
    """The golden set, whose name has what file names may have."""
    path = folder / "handbook.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for key, domain, difficulty, question, chunk, answer in ASKED:
            line = {"id": key, "question": question, "expected_chunks": [chunk], "expected_answer": answer}
            file.write(json.dumps({**line, "domain": domain, "difficulty": difficulty}, ensure_ascii=False) + "\n")
    return path


def target(*, later: bool) -> Callable[..., Any]:
    """The handbook as it was, or `later`: with the page that pushes others away."""

    def ask(question: Question, k: int) -> Response:
        key, place = question.id, CHUNKS.index((question.expected_chunks or ("",))[0])
        if later and key == FAILED:
            raise TimeoutError("the search did not answer within 5 s")
        ranked = [CHUNKS[(place + step) % len(CHUNKS)] for step in range(7)]
        if key in MENDED and not later:
            ranked = [*ranked[1:7], ranked[0]]
        if later:
            ranked = _later(key, ranked)
        return Response(
            answer=_answer(key, later=later),
            sources=tuple(_source(chunk, rank, key, later) for rank, chunk in enumerate(ranked)),
        )

    return ask


def _later(key: str, ranked: list[str]) -> list[str]:
    if key in PUSHED:
        return [NEW_PAGE, *ranked[1:5], ranked[0]]
    if key == EDITED:
        return [*ranked[1:6], ranked[0]]
    if key in GONE:
        return ranked[1:]
    if key in LOWER:
        return [ranked[1], ranked[2], ranked[0], *ranked[3:]]
    return ranked


def _answer(key: str, *, later: bool) -> str:
    told = next(answer for name, *_, answer in ASKED if name == key)
    if later and key == "5":
        return "Yes, in part within 14 days of the purchase, as our summer news say."
    return told


def _source(chunk: str, rank: int, key: str, later: bool) -> Source:
    page = chunk.partition("#")[0]
    text = f"{page.title()}: what the handbook says of {chunk}. " * 3
    if chunk == "entry#forms" and key == EDITED and later:
        text = text.replace("handbook", "new handbook")
    titles = {"news": "News of the summer", "bags": "Bags and suitcases", "fares": "Fares and refunds"}
    return Source(
        chunk_id=chunk,
        title=titles.get(page),
        url=f"https://docs.example/{page}",
        text=text,
        score=round(9.5 - rank * 0.75, 2),
    )


def judge(question: Question, response: Response) -> dict[str, Any]:
    right = response.answer == question.expected_answer
    said = "It says what the handbook says." if right else "The period is another one, and `in full` became `in part`."
    return {"reasoning": said, "accuracy": 1.0 if right else 0.4, "completeness": 0.9, "relevance": 1.0} | {
        "overall_score": 0.95 if right else 0.5
    }
