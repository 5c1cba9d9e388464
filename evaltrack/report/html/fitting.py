"""Questions as JSON that fits into one page: the first whole, then slimmer, so that every one is there."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from evaltrack.report.html.page import script_safe

WHOLE, SLIM = 9_000_000, 11_500_000
"""Bytes up to which questions are whole, and slim; past that only what happened to them is shown."""

PASSED_WHOLE = 4_000_000
"""Characters of the whole questions of a run behind which those that passed are slim: few people read that many."""

ANSWER, SOURCES, QUESTION = 200, 5, 200

BARE = (
    *("id", "q", "group", "domain", "difficulty", "category", "was", "now", "cause", "detail", "excused", "note"),
    *("score", "ranks", "edge", "up", "down"),
)
"""What is left of a question that is not even slim."""


def fitted(questions: Iterable[dict[str, Any] | str]) -> list[str]:
    """Each question as a JSON object; with 10,000 of them a page stays below 15 MB, whatever their sources hold.

    A question that is JSON already takes less memory meanwhile.
    """
    texts: list[str] = []
    total = 0
    for question in questions:
        text = (question if isinstance(question, str) else script_safe(question)) if total < WHOLE else ""
        if not text or total + len(text) > WHOLE:
            fields = json.loads(question) if isinstance(question, str) else question
            text = script_safe(_slim(fields))
            if total + len(text) > SLIM:
                text = script_safe(_bare(fields))
        total += len(text.encode())
        texts.append(text)
    return texts


def _slim(question: dict[str, Any]) -> dict[str, Any]:
    fields = {name: value for name, value in question.items() if name not in ("texts", "also", "turns", "scores")}
    if "wanted" in fields:
        fields["wanted"] = fields["wanted"][:ANSWER]
    return fields | {"sides": [_slim_side(side) for side in question.get("sides", ())]}


def _slim_side(side: dict[str, Any]) -> dict[str, Any]:
    sources = side["sources"]
    names = ("rank", "name", "expected", "moved")
    return {
        "answer": side.get("answer", "")[:ANSWER],
        "error": side.get("error", "")[:ANSWER],
        "sources": None
        if sources is None
        else [
            {name: source[name] for name in names if name in source}
            for place, source in enumerate(sources)
            if place < SOURCES or source.get("expected")
        ],
        "trace": side.get("trace"),
    }


def _bare(question: dict[str, Any]) -> dict[str, Any]:
    fields = {name: question[name] for name in BARE if name in question}
    return fields | {name: fields[name][:QUESTION] for name in ("q", "detail") if name in fields}
