"""The documents behind what got worse, as the page of a comparison shows them: text before and after, and questions."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import groupby
from typing import Any, Literal

from evaltrack.compare.comparison import Comparison
from evaltrack.compare.culprits import ChangedDocument, Culprit, DocumentPart
from evaltrack.records.amount import count
from evaltrack.report.comparison.culprit_words import culprit_words
from evaltrack.report.comparison.words import cause_words
from evaltrack.report.html.page import safe_link, shown
from evaltrack.report.word_diff import Piece, word_diff

LineKind = Literal["same", "removed", "added", "gap"]
CONTEXT = 2
"""Lines that are the same and still shown, above and below a change."""

LINES, CHARACTERS, ROWS = 400, 20_000, 80
"""Lines and characters of each side that are compared, and lines that are shown."""

ALIKE = 0.4
"""Share of the words that a line must keep for its changes to be marked in it; below it is another line."""


@dataclass(frozen=True)
class DiffLine:
    """One line: its number on each side, where it stands there, and its pieces; a gap says how many are left out."""

    kind: LineKind
    before: int | None
    after: int | None
    pieces: tuple[Piece, ...]


def document_diff(before: str | None, after: str | None) -> list[DiffLine]:
    """The lines that changed with those around them; of a text on one side alone all lines, up to `ROWS`.

    A line is a line of the text, and of a long one a sentence.
    """
    old, new = (list(_lines(text or "")) for text in (before, after))
    rows = list(_rows(old, new))
    return _condensed(rows)[:ROWS]


def _lines(text: str) -> Iterator[str]:
    sentences = (
        sentence for line in text[:CHARACTERS].splitlines() for sentence in re.split(r"(?<=[.!?;:])\s+(?=\S)", line)
    )
    for place, sentence in enumerate(each for each in sentences if each.strip()):
        if place >= LINES:
            return
        yield sentence.strip()


def _rows(old: Sequence[str], new: Sequence[str]) -> Iterator[DiffLine]:
    for kind, i, j, m, n in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            for step in range(j - i):
                yield DiffLine("same", i + step + 1, m + step + 1, (("same", old[i + step]),))
            continue
        pairs = [
            (None if i + step >= j else old[i + step], None if m + step >= n else new[m + step])
            for step in range(max(j - i, n - m))
        ]
        for step, (before, after) in enumerate(pairs):
            if before is not None:
                yield DiffLine("removed", i + step + 1, None, _pieces(before, after, "removed"))
        for step, (before, after) in enumerate(pairs):
            if after is not None:
                yield DiffLine("added", None, m + step + 1, _pieces(before, after, "added"))


def _pieces(before: str | None, after: str | None, side: Literal["removed", "added"]) -> tuple[Piece, ...]:
    """The line of one side, with what the other lacks marked; unmarked where the two have little in common."""
    own = before if side == "removed" else after
    if before is None or after is None:
        return (("same", own or ""),)
    pieces = word_diff(before, after)
    kept = sum(len(text) for kind, text in pieces if kind == "same")
    if kept < ALIKE * max(len(before), len(after)):
        return (("same", own or ""),)
    return tuple(piece for piece in pieces if piece[0] in ("same", side))


def _condensed(rows: Sequence[DiffLine]) -> list[DiffLine]:
    """Without the lines that are far from any change."""
    changed = [place for place, row in enumerate(rows) if row.kind != "same"]
    near = {place for at in changed for place in range(at - CONTEXT, at + CONTEXT + 1)}
    if not changed:
        near = set(range(2 * CONTEXT))
    lines: list[DiffLine] = []
    for is_near, group in groupby(enumerate(rows), key=lambda pair: pair[0] in near):
        stretch = [row for _, row in group]
        gap = DiffLine("gap", None, None, (("same", f"{count(len(stretch), 'line')} the same"),))
        lines += stretch if is_near else [gap]
    return lines


SHOWN = 8


def culprit_lines(comparison: Comparison) -> list[dict[str, Any]]:
    """At most `SHOWN`, those with the most questions first; the name is empty where no source is concerned."""
    return [_culprit_line(culprit) for culprit in comparison.culprits[:SHOWN]]


def more_culprits(comparison: Comparison) -> str:
    """``and 2 more, with 1 question each``: how many are not shown, with how many questions; empty where all are."""
    sizes = [len(culprit.ids) for culprit in comparison.culprits[SHOWN:]]
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


DOCUMENTS, PARTS, QUESTIONS = 6, 6, 12


def document_views(comparison: Comparison) -> list[dict[str, Any]]:
    """At most `DOCUMENTS`, those with the most questions first."""
    return [_view(document) for document in comparison.documents(DOCUMENTS)]


def _view(document: ChangedDocument) -> dict[str, Any]:
    culprit = document.culprit
    differing = [part for part in document.parts if part.differs]  # the same text on both sides explains nothing
    return {
        "name": shown(culprit.page, 120),
        "what": culprit_words(culprit),
        "counted": f"{count(len(culprit.ids), 'question')} got worse with it",
        "link": safe_link(culprit.link),
        "parts": [_part(part) for part in differing[:PARTS]],
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
        "more_parts": len(differing[PARTS:]),
    }


def _part(part: DocumentPart) -> dict[str, Any]:
    """One chunk: its name, what can be said of its text, and the text as lines of a review."""
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
