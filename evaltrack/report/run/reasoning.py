"""What the judges said, for people: one Markdown page with the failures first; and for machines, JSON Lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from evaltrack.metrics.rubric import tier_words
from evaltrack.records.amount import count
from evaltrack.records.stored_row import TEXT_LIMIT, StoredRow, StoredVerdict, text_digest
from evaltrack.records.verdict import ANSWER_GRADES
from evaltrack.report.run.markdown import plain
from evaltrack.report.words import failure_words

FIELDS = ("judge", "reasoning", *ANSWER_GRADES, "declined")
"""What a line holds of a verdict. Not what it cost: whoever reads it back pays nothing."""

SHOWN_TURNS = 10
"""Last turns before a question that the page shows."""

SHOWN = 500
"""Questions on the page; the JSON Lines hold all."""


def verdict_lines(rows: Iterable[StoredRow], judge: str | None = None) -> Iterator[str]:
    """One line for each verdict, in the form that a `recorded:` judge reads; of one judge of a panel, or of all.

    It says of which answer the verdict is, unless the table holds only the beginning of that.
    """
    for row in rows:
        for verdict in row.verdicts:
            if judge is not None and verdict.judge != judge:
                continue
            fields = {name: value for name in FIELDS if (value := getattr(verdict, name)) is not None}
            fields |= json.loads(verdict.observed) if verdict.observed else {}
            judged = {"answer_digest": text_digest(row.answer)} if row.answer and len(row.answer) < TEXT_LIMIT else {}
            yield json.dumps({"id": row.id, **fields, **judged}, ensure_ascii=False, allow_nan=False) + "\n"


def reasoning_page(rows: Iterable[StoredRow]) -> Iterator[str]:
    """The page: judge errors, then questions that did not pass, then the rest by score."""
    judged = [row for row in rows if row.verdicts or row.judge_failed]
    judged.sort(key=_order)
    yield f"# What the judge said\n\n{count(len(judged), 'question')}, failures first.\n"
    for row in judged[:SHOWN]:
        yield f"\n## {plain(row.id)}: {plain(row.question, 300)}\n\n"
        for turn in row.history[-SHOWN_TURNS:]:
            yield f"- before, {turn.role}: {plain(turn.content, 300)}\n"
        yield f"- answer: {plain(row.answer or '(none)', 1000)}\n"
        if row.expected_answer:
            yield f"- expected: {plain(row.expected_answer, 1000)}\n"
        if row.error:
            yield f"- **{plain(failure_words(row.error), 1000)}**\n"
        for verdict in row.verdicts:
            yield f"- {plain(verdict.judge)}: {_verdict_words(row, verdict)}\n\n  {plain(verdict.reasoning, 3000)}\n"
    if len(judged) > SHOWN:
        yield f"\n{len(judged) - SHOWN} more stand in `verdicts.jsonl`.\n"


def _order(row: StoredRow) -> tuple[int, float]:
    if row.error:
        return 0, 0.0
    score = row.scores.get("reasoning_score", row.scores.get("overall_score"))
    return (1 if row.passed is False else 2), score if score is not None else 1.0


def _verdict_words(row: StoredRow, verdict: StoredVerdict) -> str:
    if verdict.observed:
        return _observed(row, json.loads(verdict.observed))
    if row.negative:
        return "declined" if verdict.declined else "**did not decline**"
    values = ((name, getattr(verdict, name)) for name in ANSWER_GRADES)
    return ", ".join(f"{name} {value:.2f}" for name, value in values if value is not None)


def _observed(row: StoredRow, observed: dict[str, Any]) -> str:
    """The score and what led to it, in a line."""
    parts = [f"{observed['hypotheses']} hypotheses, {observed['shifts']} shifts", f"crux {observed['crux_treatment']}"]
    parts.append(f"uncertainty {observed['uncertainty_treatment']}")
    if observed["confidence"] is not None:
        parts.append(f"{observed['confidence']:g} % sure")
    if "reasoning_score" in row.scores and row.tier is not None:
        fails = f" ({', '.join(row.hard_fails)})" if row.hard_fails else ""
        tier = f"tier {row.tier}, {tier_words(row.tier, row.hard_fails)}"
        parts.insert(0, f"score {row.scores['reasoning_score']:g}, {tier}{fails}")
    return ", ".join(parts)
