"""Collects the fields of a comparison page's first screen: the edit, next steps, worst questions and documents."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evaltrack.compare.change import Change
from evaltrack.compare.comparison import Comparison
from evaltrack.compare.culprits import ChangedDocument, Culprit, DocumentPart, changed_documents
from evaltrack.records.amount import count, verb
from evaltrack.records.stored_row import StoredRow
from evaltrack.report.comparison_summary import culprit_words, next_steps
from evaltrack.report.comparison_words import cause_words
from evaltrack.report.escaping import clip
from evaltrack.report.html.page import safe_link, shown
from evaltrack.report.html.question_parts import JUDGED, REASONING, numbers
from evaltrack.report.text_diff import DiffLine, LineKind, Piece, document_diff
from evaltrack.report.words import failure_words, metric_number

_WORD = re.compile(r"\w+(?:[.,]\w+)*")

LONGEST, LINE, AROUND, DOCUMENTS = 20_000, 110, 40, 6
"""Characters of a document that are compared, of a line that are shown, and of a line before its first change.

`DOCUMENTS` are searched.
"""


@dataclass(frozen=True)
class EditLine:
    """A removed or added line: its pieces. Those that the other line lacks are marked.

    `begins_later` and `goes_on` say where it was cut.
    """

    kind: LineKind
    pieces: tuple[Piece, ...]
    begins_later: bool = False
    goes_on: bool = False


@dataclass(frozen=True)
class EditView:
    """An edited line of a document, before and after, and the number of other changed lines."""

    lines: tuple[EditLine, ...]
    more: int


def edit_view(comparison: Comparison) -> EditView | None:
    """Return the edit of the document that is the main cause; None if there is no such document, edit, or text."""
    behind = comparison.behind
    if behind is None or not behind.culprits or behind.kind == "page_new":
        return None
    documents = (each for each in changed_documents(comparison, DOCUMENTS) if each.culprit is behind.culprits[0])
    lines = [line for document in documents for line in _changed_lines(document)]
    pair = _telling_pair(lines, _words_that_changed(comparison, behind.culprits[0]))
    return EditView(tuple(map(_short, pair)), len(lines) - len(pair)) if pair else None


def _changed_lines(document: ChangedDocument) -> list[DiffLine]:
    """Return the removed and added lines of the document's chunks that have a text on both sides."""
    parts = [part for part in document.parts if part.before and part.after]
    pairs = ((shown(part.before, LONGEST), shown(part.after, LONGEST)) for part in parts)
    return [line for pair in pairs for line in document_diff(*pair) if line.kind in ("removed", "added")]


def _words_that_changed(comparison: Comparison, culprit: Culprit) -> frozenset[str]:
    """Return the words that differ between the answers of both sides, in the questions of this culprit."""
    changes = [change for change in comparison.worse if change.id in culprit.ids]
    sides = ((_words(change.before), _words(change.after)) for change in changes)
    return frozenset().union(*(before ^ after for before, after in sides))


def _words(row: StoredRow | None) -> frozenset[str]:
    return frozenset(_WORD.findall((row.answer or "").lower())) if row is not None else frozenset()


def _telling_pair(lines: Sequence[DiffLine], changed_words: frozenset[str]) -> list[DiffLine]:
    """Return a removed line and the next added line: the pair that explains most of the answers.

    It shares the most marked words with the changes of the answers. If no pair shares any, it is the first.
    """
    pairs = [_pair(lines[place:]) for place, line in enumerate(lines) if line.kind == "removed"] or [_pair(lines)]

    def telling(pair: Sequence[DiffLine]) -> int:
        marked = " ".join(text for line in pair for kind, text in line.pieces if kind != "same")
        return len(changed_words & frozenset(_WORD.findall(marked.lower())))

    return max(pairs, key=telling)


def _pair(lines: Sequence[DiffLine]) -> list[DiffLine]:
    """Return the first removed line and the first added line."""
    firsts = (next((line for line in lines if line.kind == kind), None) for kind in ("removed", "added"))
    return [line for line in firsts if line is not None]


def _short(line: DiffLine) -> EditLine:
    """Return the line around its first change."""
    length = sum(len(text) for _, text in line.pieces)
    if length <= LINE:
        return EditLine(line.kind, line.pieces)
    lead = line.pieces[0][1] if line.pieces[0][0] == "same" and len(line.pieces) > 1 else ""
    start = lead.rfind(" ", 0, max(len(lead) - AROUND, 0)) + 1 if len(lead) > AROUND else 0
    pieces, room, skipped = [], LINE, start
    for kind, text in line.pieces:
        rest, skipped = text[skipped:], max(skipped - len(text), 0)
        if len(rest) > room:
            rest = rest[:room].rpartition(" ")[0] or rest[:room]
            room = 0
        pieces += [(kind, rest)] if rest else []
        room -= min(len(rest), room)
        if not room:
            break
    return EditLine(line.kind, tuple(pieces), start > 0, length - start > LINE)


MOST, OF_EACH = 3, 2
"""Questions shown if more broke than were fixed, and questions of each kind shown if not."""

QUESTION, EXPECTED, WHOLE, LINES, LEAST = 84, 72, 72, 80, 44
"""Characters of a question, of an expected answer, and of an answer that is shown whole.

`LINES` are the characters that the measurements and a longer answer share, `LEAST` the least for the answer.
"""

BEGINNING = 12
"""Characters of a common beginning of two answers. A longer one is left out."""


@dataclass(frozen=True)
class Excerpt:
    """A text or a part of it. `begins_later` and `goes_on` say where it was cut: the text may contain dots."""

    text: str
    begins_later: bool = False
    goes_on: bool = False


@dataclass(frozen=True)
class SideView:
    """The result of one side: ``rank 2 · judge 0.310``, and the answer or the error."""

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
    """Return the first broken questions, and as many fixed ones if no more broke than were fixed."""
    broke, fixed = comparison.flips, comparison.by_fate["fixed"]
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
    """Return the expected answer, or the expected sources if only the ranks differ."""
    row = change.after or change.before
    if row is None:
        return "–"
    if row.expected and _broke_in_retrieval(change):
        return ", ".join(row.expected)
    return row.expected_answer or ("should decline" if row.negative else ", ".join(row.expected or ()) or "–")


def _broke_in_retrieval(change: Change) -> bool:
    """Return True if the ranks differ and no answer was judged on either side."""
    numbers_of = numbers(change.before, change.after)
    was, now = numbers_of.get("ranks", (None, None))
    return was != now and "score" not in numbers_of


def _side(row: StoredRow | None, other: StoredRow | None) -> SideView:
    """Return the measurements of the row, and its answer: whole if it fits, else from its first difference."""
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
    """Yield ``expected source at rank 2``, ``declined``, ``judge 0.310``. A rank that both sides share is left out."""
    numbers_of = numbers(other, row)
    (was, rank), score = numbers_of.get("ranks", (None, None)), numbers_of.get("score", (None, None))[1]
    if rank is not None and (rank != was or other is None):
        yield f"expected source at rank {rank}" if rank else "expected source not returned"
    if row.declined:
        yield "declined" if row.abstained or row.negative else "no sources"
    if score is not None:
        reasoned = REASONING in row.scores
        yield f"{'score' if reasoned else 'judge'} {metric_number(REASONING if reasoned else JUDGED, score)}"


def _parting(answer: str, other: str) -> int:
    """Return the start of the first word that differs from the other answer; 0 if that is near the beginning."""
    pairs = enumerate(zip(answer, other, strict=False))
    same = next((place for place, (one, two) in pairs if one != two), min(len(answer), len(other)))
    start = answer.rfind(" ", 0, same) + 1
    return start if same < len(answer) and start > BEGINNING else 0


def _excerpt(text: str, limit: int, start: int = 0) -> Excerpt:
    """Return at most `limit` characters of the text from `start`, cut between words if there are any."""
    rest = text[start:]
    if len(rest) <= limit:
        return Excerpt(shown(rest, limit), start > 0)
    space = rest.rfind(" ", limit // 2, limit)
    return Excerpt(shown(rest[: space if space > 0 else limit], limit), start > 0, goes_on=True)


def first_screen(comparison: Comparison) -> dict[str, Any]:
    """Return the fields that only the first card of the page shows."""
    return {
        "edit": edit_view(comparison),
        "steps": next_steps(comparison),
        "worst": worst_groups(comparison),
    }


def difference_lines(comparison: Comparison) -> list[tuple[str, str, str]]:
    """Return the differences between the runs with both values; a dash if a run does not state one."""
    return [
        (clip(each.name, 80), clip(each.baseline, 200) or "–", clip(each.candidate, 200) or "–")
        for each in comparison.differences
    ]


# Documents of questions that got worse

CULPRITS = 8


def culprit_lines(comparison: Comparison) -> list[dict[str, Any]]:
    """Return at most `CULPRITS` culprits, most questions first. The name is empty if no source is concerned."""
    return [_culprit_line(culprit) for culprit in comparison.culprits[:CULPRITS]]


def more_culprits(comparison: Comparison) -> str:
    """Return the number of culprits not shown: ``and 2 more, with 1 question each``; empty if all are shown."""
    sizes = [len(culprit.ids) for culprit in comparison.culprits[CULPRITS:]]
    if not sizes:
        return ""
    most = f"{'' if sizes[0] == sizes[-1] else 'at most '}{count(sizes[0], 'question')}"
    return f"and {len(sizes):,} more, with {most}{' each' if len(sizes) > 1 else ''}"


def _culprit_line(culprit: Culprit) -> dict[str, Any]:
    name = shown(culprit.page, 120)
    parts = [shown(part, 120) for part in culprit.parts]
    return {
        "name": name,
        "what": culprit_words(culprit),
        "link": safe_link(culprit.link),
        "parts": [part for part in parts if part != name],
        "ids": [shown(key, 200) for key in culprit.ids],
    }


PARTS, QUESTIONS = 6, 12


def document_views(comparison: Comparison) -> list[dict[str, Any]]:
    """Return at most `DOCUMENTS` documents, most questions first."""
    return [_document_view(document) for document in changed_documents(comparison, DOCUMENTS)]


def _document_view(document: ChangedDocument) -> dict[str, Any]:
    culprit = document.culprit
    return {
        "name": shown(culprit.page, 120),
        "what": culprit_words(culprit),
        "counted": f"{count(len(culprit.ids), 'question')} got worse with it",
        "link": safe_link(culprit.link),
        "parts": [_part(part) for part in document.parts[:PARTS]],
        "questions": [
            {
                "id": shown(each.id, 200),
                "question": shown(each.question, 300),
                "way": f"{each.was} → {each.now}" if each.was != each.now else each.fate,
                "detail": shown(cause_words(each), 400),
            }
            for each in document.questions[:QUESTIONS]
        ],
        "more": max(0, len(document.questions) - QUESTIONS),
        "more_parts": len(document.parts[PARTS:]),
    }


def _part(part: DocumentPart) -> dict[str, Any]:
    """Return one chunk: its name, the state of its text, and the lines of its diff."""
    before, after = (None if text is None else shown(text, 20_000) for text in (part.before, part.after))
    lines = document_diff(before, after)
    counts = {kind: sum(line.kind == kind for line in lines) for kind in ("added", "removed")}
    return {"name": shown(part.name, 160), "state": _state(part), "lines": lines, **counts}


def _state(part: DocumentPart) -> str:
    if part.before is None and part.after is None:
        return "Its text is not in the rows."
    if part.after is None:
        return "No longer returned for any question that is listed; whether it still exists is not known here."
    if part.before is None:
        return "Returned now, and before for no question that is listed."
    return ""
