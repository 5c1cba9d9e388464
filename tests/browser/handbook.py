"""A small travel handbook, asked twice: before and after somebody added a page that pushes others away."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evaltrack import Response, Source
from evaltrack.records import Question

ASKED: tuple[tuple[str, str, str, str, str, str], ...] = (
    ("1", "visas", "easy", "How long may I stay without a visa?", "entry#stay", "Ninety days within any half year."),
    ("2", "visas", "medium", "Where do I renew a lost passport?", "consulate#passport", "At the nearest consulate."),
    ("3", "visas", "hard", "Does a transit need a visa of its own?", "entry#transit", "Only outside the transit area."),
    (
        "visa/entry",
        "visas",
        "easy",
        "Which form do I fill in at the border?",
        "entry#forms",
        "The blue card, one each.",
    ),
    ("4", "visas", "medium", "Can a visa be extended once I am there?", "entry#extend", "Once, by thirty days."),
    ("lead time", "fares", "medium", "How early must I book the cheap fare?", "fares#lead", "Twenty-one days ahead."),
    ("50 % off?", "fares", "hard", "Who gets half off at weekends?", "fares#half", "Families of three or more."),
    ("5", "fares", "easy", "Can I get my money back?", "fares#refunds", "Yes, in full within 30 days of the purchase."),
    (
        "6",
        "fares",
        "easy",
        "What does a changed date cost?",
        "fares#change",
        "A fee of 40 €, and the difference in fare.",
    ),
    (
        "7",
        "fares",
        "medium",
        "Do children pay?",
        "fares#children",
        "Below six they travel free, up to twelve for half.",
    ),
    ("größe-ü", "luggage", "easy", "How large may a cabin bag be?", "bags#cabin", "55 by 40 by 20 centimetres."),
    (
        "8",
        "luggage",
        "medium",
        "May I bring a surfboard?",
        "bags#sports",
        "Yes, for 60 € each way, booked two days ahead.",
    ),
    (
        "日本",
        "luggage",
        "hard",
        "What happens to luggage that is late?",
        "bags#late",
        "It is brought to you at our cost.",
    ),
    ("9", "luggage", "easy", "How heavy may a suitcase be?", "bags#weight", "23 kilograms, or 32 for a surcharge."),
    ("a#b&c=d", "luggage", "medium", "Are batteries allowed?", "bags#batteries", "In the cabin only, up to 100 Wh."),
    ("10", "rail", "easy", "Is a seat included?", "rail#seat", "On night trains; elsewhere it costs 5 €."),
    (
        "11",
        "rail",
        "medium",
        "What if I miss a connection?",
        "rail#missed",
        "Take the next train with the same ticket.",
    ),
    ("12", "rail", "hard", "Is my bicycle carried?", "rail#bicycle", "On regional trains, outside the rush hours."),
    ("13", "rail", "easy", "When does the night train leave?", "rail#night", "At 21:40, every day but Saturday."),
    ("14", "rail", "medium", "Do dogs need a ticket?", "rail#dogs", "Large ones do, at half the fare."),
    ("15", "rail", "hard", "Who pays for a delay of two hours?", "rail#delay", "The railway, half of the fare."),
    ("16", "visas", "hard", "May I work while I travel?", "entry#work", "Not on a visitor's visa."),
    ("17", "fares", "hard", "Is there a fare for students?", "fares#students", "A quarter off up to the age of 26."),
    (
        "18",
        "luggage",
        "medium",
        "Can I leave a bag at the station?",
        "bags#locker",
        "In lockers, for up to three days.",
    ),
)

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
    """As a judge who knows the handbook: what is not the expected answer is half right."""
    right = response.answer == question.expected_answer
    said = "It says what the handbook says." if right else "The period is another one, and `in full` became `in part`."
    return {"reasoning": said, "accuracy": 1.0 if right else 0.4, "completeness": 0.9, "relevance": 1.0} | {
        "overall_score": 0.95 if right else 0.5
    }
