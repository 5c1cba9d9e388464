"""What judges said of a response, as a page shows it: each with its numbers and the words that it quotes."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import ValidationError

from evaltrack.records.verdict import ANSWER_GRADES, Dimensions, Observed
from evaltrack.report.html.text import shown
from evaltrack.report.words import metric_title
from evaltrack.rows.stored_parts import StoredVerdict
from evaltrack.rows.stored_row import StoredRow

JUDGES, REASONING, QUOTES, QUOTE = 12, 3000, 16, 300
"""Judges of a response, characters of what one said, its quotes, and characters of a quote; at most."""

OVERALL, *PARTS = ANSWER_GRADES
DIMENSIONS = tuple(Dimensions.model_fields)


def grade_titles(names: Iterable[str]) -> dict[str, list[Any]]:
    """What each of these grades is called, and the highest there is."""
    return {name: [metric_title(name, 0), 10 if name in DIMENSIONS else 1] for name in sorted(set(names))}


def grades_in(question: dict[str, Any]) -> Iterator[str]:
    """The names of the grades in the verdicts of a question."""
    for side in question.get("sides", ()):
        for verdict in side.get("verdicts", ()):
            yield from verdict.get("grades", ())


def verdicts(row: StoredRow) -> list[dict[str, Any]]:
    """One object a judge: `judge`, `said`, and where there are: `score`, `declined`, `grades`, `quotes`, `more_quotes`.

    Behind them what those said whom scores of one's own asked, under the name of the score.
    """
    return [*map(_verdict, row.verdicts[:JUDGES]), *_of_scores(row)]


def more_judges(row: StoredRow) -> int:
    """How many judges of the response `verdicts` leaves out."""
    return max(0, len(row.verdicts) - JUDGES)


def _verdict(verdict: StoredVerdict) -> dict[str, Any]:
    grades = {name: value for name in PARTS if (value := getattr(verdict, name)) is not None}
    observed = _observed(verdict.observed)
    quotes = _quotes(observed) if observed else []
    fields: dict[str, Any] = {
        "judge": shown(verdict.judge, 80),
        "said": shown(verdict.reasoning, REASONING),
        "score": verdict.overall_score,
        "declined": verdict.declined,
        "grades": grades | (observed.dimensions.model_dump() if observed else {}),
        "quotes": [shown(quote, QUOTE) for quote in quotes[:QUOTES]],
        "more_quotes": len(quotes[QUOTES:]) or None,
    }
    return {name: value for name, value in fields.items() if value is not None and value not in ({}, [])}


def _observed(text: str | None) -> Observed | None:
    """What a judge of reasoning saw; None where the stored text is none of ours."""
    try:
        return Observed.model_validate_json(text) if text else None
    except ValidationError:
        return None


def _quotes(observed: Observed) -> list[str]:
    """Each of them once, whole."""
    return list(dict.fromkeys(quote for each in observed.quotes.values() for quote in each if quote.strip()))


def _of_scores(row: StoredRow) -> Iterator[dict[str, Any]]:
    if row.score_reasoning is None:
        return
    try:
        reasonings = json.loads(row.score_reasoning)
    except ValueError:
        return
    for name, text in list(reasonings.items())[:JUDGES] if isinstance(reasonings, dict) else ():
        if isinstance(text, str) and text:
            yield {"judge": shown(name, 80), "said": shown(text, REASONING)}
