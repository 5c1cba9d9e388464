"""The questions that broke first, each in one line: what is expected, what came before, and what comes now."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from evaltrack.compare.change import Change
from evaltrack.compare.comparison import Comparison
from evaltrack.report.html.places import JUDGED, REASONING, numbers
from evaltrack.report.html.text import shown
from evaltrack.report.words import failure_words, metric_number
from evaltrack.rows.stored_row import StoredRow

MOST = 3
QUESTION, EXPECTED, ANSWER = 92, 70, 52
BEGINNING = 12
"""Characters that two answers may begin with alike before these are left out."""


@dataclass(frozen=True)
class WorstView:
    """One question in a line."""

    id: str
    question: str
    expected: str
    before: str
    now: str


def worst_views(comparison: Comparison) -> list[WorstView]:
    """The first that broke."""
    return [_view(change) for change in comparison.flips[:MOST]]


def _view(change: Change) -> WorstView:
    row = change.after or change.before
    return WorstView(
        id=shown(change.id, 200),
        question=shown(change.question or change.id, QUESTION),
        expected=shown(_expected(row), EXPECTED),
        before=" · ".join(_came(change.before, change.after)) or "–",
        now=" · ".join(_came(change.after, change.before)) or "–",
    )


def _expected(row: StoredRow | None) -> str:
    if row is None:
        return "–"
    return row.expected_answer or ("should decline" if row.negative else ", ".join(row.expected or ()) or "–")


def _came(row: StoredRow | None, other: StoredRow | None) -> Iterator[str]:
    """``rank 2 · judge 0.310 · … most often within``: what was measured of the row, and its answer where they part.

    A rank that is the same on the other side is left out.
    """
    if row is None:
        return
    measured = numbers(other, row)
    (was, rank), score = measured.get("ranks", (None, None)), measured.get("score", (None, None))[1]
    if row.declined:
        yield "declined"
    elif rank is not None and (rank != was or other is None):
        yield f"rank {rank}" if rank else "not returned"
    if score is not None:
        reasoned = REASONING in row.scores
        yield f"{'score' if reasoned else 'judge'} {metric_number(REASONING if reasoned else JUDGED, score)}"
    if row.error:
        yield shown(failure_words(row.error), ANSWER)
    elif row.answer:
        yield shown(_from_difference(row.answer, (other and other.answer) or ""), ANSWER)


def _from_difference(answer: str, other: str) -> str:
    """The answer from the word in which it parts from the other; the whole of it where that is near its beginning."""
    pairs = enumerate(zip(answer, other, strict=False))
    same = next((place for place, (one, two) in pairs if one != two), min(len(answer), len(other)))
    start = answer.rfind(" ", 0, same) + 1
    return f"… {answer[start:]}" if same < len(answer) and start > BEGINNING else answer
