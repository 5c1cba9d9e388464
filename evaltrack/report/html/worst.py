"""The questions that broke first, each in one line: what is expected, what came before, and what comes now."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evaltrack.compare.change import Change
from evaltrack.compare.comparison import Comparison
from evaltrack.records.amount import count, verb
from evaltrack.report.html.places import JUDGED, REASONING, numbers
from evaltrack.report.html.text import shown
from evaltrack.report.words import failure_words, metric_number
from evaltrack.rows.stored_row import StoredRow

MOST, OF_EACH = 3, 2
"""Questions that are shown: of those that broke alone, and of both where as many were fixed."""

QUESTION, EXPECTED, WHOLE, LINES, LEAST = 84, 72, 72, 80, 44
"""Characters of a question, of what is expected, of an answer that is shown whole; and of the two lines that what was
measured and a longer answer share, of which the answer has at least so many.
"""

BEGINNING = 12
"""Characters that two answers may begin with alike before these are left out."""


@dataclass(frozen=True)
class Excerpt:
    """A text, or a part of it: `begins_later` and `goes_on` say where it was cut, as its own dots may be its own."""

    text: str
    begins_later: bool = False
    goes_on: bool = False


@dataclass(frozen=True)
class SideView:
    """What came on one side: ``rank 2 · judge 0.310``, and the answer or the error."""

    measured: str
    answer: Excerpt


@dataclass(frozen=True)
class WorstView:
    """One question in a line."""

    id: str
    question: Excerpt
    expected: Excerpt
    before: SideView
    now: SideView


@dataclass(frozen=True)
class WorstGroup:
    """Questions that broke, or were fixed, under their title."""

    title: str
    fixed: bool
    questions: tuple[WorstView, ...]


def worst_groups(comparison: Comparison) -> list[WorstGroup]:
    """The first that broke; where as many were fixed the first of these too, so that it does not look one-sided."""
    broke, fixed = comparison.flips, comparison.fixes
    if not broke:
        return []
    if comparison.count("fixed") < comparison.count("broke"):
        return [_group(comparison, broke[:MOST], "broke")]
    both = (_group(comparison, broke[:OF_EACH], "broke"), _group(comparison, fixed[:OF_EACH], "fixed"))
    return [group for group in both if group.questions]


def _group(comparison: Comparison, changes: Sequence[Change], fate: str) -> WorstGroup:
    total = comparison.count("broke" if fate == "broke" else "fixed")
    way = fate if fate == "broke" else f"{verb(total, 'was', 'were')} fixed"
    which = "The worst of the" if fate == "broke" and len(changes) < total else "Of the"
    whole = f"The {'question' if total == 1 else count(total, 'question')} that {way}"
    title = whole if len(changes) >= total else f"{which} {total:,} that {way}"
    return WorstGroup(title, fate != "broke", tuple(map(_view, changes)))


def _view(change: Change) -> WorstView:
    return WorstView(
        id=shown(change.id, 200),
        question=_excerpt(change.question or change.id, QUESTION),
        expected=_excerpt(_expected(change), EXPECTED),
        before=_side(change.before, change.after),
        now=_side(change.after, change.before),
    )


def _expected(change: Change) -> str:
    """The expected answer; where the ranks alone tell the sides apart the expected sources."""
    row = change.after or change.before
    if row is None:
        return "–"
    if row.expected and _broke_in_retrieval(change):
        return ", ".join(row.expected)
    return row.expected_answer or ("should decline" if row.negative else ", ".join(row.expected or ()) or "–")


def _broke_in_retrieval(change: Change) -> bool:
    """Whether the ranks differ, which are then shown, and no answer was judged on either side."""
    numbers_of = numbers(change.before, change.after)
    was, now = numbers_of.get("ranks", (None, None))
    return was != now and "score" not in numbers_of


def _side(row: StoredRow | None, other: StoredRow | None) -> SideView:
    """What was measured of the row, and its answer: whole where it fits, else from where the two part."""
    if row is None:
        return SideView("", Excerpt("–"))
    measured = " · ".join(_measured(row, other))
    room = max(LINES - len(measured), LEAST)
    if row.error:
        return SideView(measured, _excerpt(failure_words(row.error), room))
    if not row.answer:
        return SideView(measured, Excerpt("" if measured else "–"))
    if len(row.answer) <= WHOLE:
        return SideView(measured, _excerpt(row.answer, WHOLE))
    return SideView(measured, _excerpt(row.answer, room, _parting(row.answer, (other and other.answer) or "")))


def _measured(row: StoredRow, other: StoredRow | None) -> Iterator[str]:
    """``rank 2``, ``declined``, ``judge 0.310``; a rank that is the same on the other side is left out."""
    numbers_of = numbers(other, row)
    (was, rank), score = numbers_of.get("ranks", (None, None)), numbers_of.get("score", (None, None))[1]
    if rank is not None and (rank != was or other is None):
        yield f"rank {rank}" if rank else "not returned"
    if row.declined:
        yield "declined" if row.abstained or row.negative else "no sources"
    if score is not None:
        reasoned = REASONING in row.scores
        yield f"{'score' if reasoned else 'judge'} {metric_number(REASONING if reasoned else JUDGED, score)}"


def _parting(answer: str, other: str) -> int:
    """Where the answer is shown from: the word in which it parts from the other; 0 where that is near its beginning."""
    pairs = enumerate(zip(answer, other, strict=False))
    same = next((place for place, (one, two) in pairs if one != two), min(len(answer), len(other)))
    start = answer.rfind(" ", 0, same) + 1
    return start if same < len(answer) and start > BEGINNING else 0


def _excerpt(text: str, limit: int, start: int = 0) -> Excerpt:
    """The text from `start`, of at most `limit` characters, cut between words where there are any."""
    rest = text[start:]
    if len(rest) <= limit:
        return Excerpt(shown(rest, limit), start > 0)
    space = rest.rfind(" ", limit // 2, limit)
    return Excerpt(shown(rest[: space if space > 0 else limit], limit), start > 0, goes_on=True)
