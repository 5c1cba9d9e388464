"""The line of a document whose edit tells most of what broke, before and after: for the first screen."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from evaltrack.compare.changed_documents import ChangedDocument, changed_documents
from evaltrack.compare.comparison import Comparison
from evaltrack.compare.culprits import Culprit
from evaltrack.report.html.document_diff import DiffLine, LineKind, document_diff
from evaltrack.report.html.text import shown
from evaltrack.report.word_diff import Piece
from evaltrack.rows.stored_row import StoredRow

_WORD = re.compile(r"\w+(?:[.,]\w+)*")

LONGEST, LINE, AROUND, DOCUMENTS = 20_000, 110, 40, 6
"""Characters of a document that are compared, of a line that are shown, and of it before its first change; documents
that are looked at.
"""


@dataclass(frozen=True)
class EditLine:
    """A line that was taken out or put in: its pieces, of which those that the other line lacks are marked.

    `begins_later` and `goes_on` say where it was cut.
    """

    kind: LineKind
    pieces: tuple[Piece, ...]
    begins_later: bool = False
    goes_on: bool = False


@dataclass(frozen=True)
class EditView:
    """A line of a document that was edited, before and after, and how many more lines changed."""

    lines: tuple[EditLine, ...]
    more: int


def edit_view(comparison: Comparison) -> EditView | None:
    """That of the document behind what got worse; None where none is, or it was not edited, or no text is held."""
    behind = comparison.behind
    if behind is None or behind.culprit is None or behind.culprit.novelty == "new":
        return None
    documents = (each for each in changed_documents(comparison, DOCUMENTS) if each.culprit is behind.culprit)
    lines = [line for document in documents for line in _changed_lines(document)]
    pair = _telling_pair(lines, _words_that_changed(comparison, behind.culprit))
    return EditView(tuple(map(_short, pair)), len(lines) - len(pair)) if pair else None


def _changed_lines(document: ChangedDocument) -> list[DiffLine]:
    """The lines of its chunks that were taken out or put in, of those with a text on both sides."""
    parts = [part for part in document.parts if part.before and part.after and part.differs]
    pairs = ((shown(part.before, LONGEST), shown(part.after, LONGEST)) for part in parts)
    return [line for pair in pairs for line in document_diff(*pair) if line.kind in ("removed", "added")]


def _words_that_changed(comparison: Comparison, culprit: Culprit) -> frozenset[str]:
    """The words of the answers before and now that the other side lacks, of the questions behind which it is."""
    changes = [change for change in (*comparison.flips, *comparison.drops) if change.id in culprit.ids]
    sides = ((_words(change.before), _words(change.after)) for change in changes)
    return frozenset().union(*(before ^ after for before, after in sides))


def _words(row: StoredRow | None) -> frozenset[str]:
    return frozenset(_WORD.findall((row.answer or "").lower())) if row is not None else frozenset()


def _telling_pair(lines: Sequence[DiffLine], changed_words: frozenset[str]) -> list[DiffLine]:
    """A line that was taken out, and the one put in behind it: of all those the pair that tells most of the answers.

    It shares most marked words with what changed in them; the first pair where none does.
    """
    pairs = [_pair(lines[place:]) for place, line in enumerate(lines) if line.kind == "removed"] or [_pair(lines)]

    def telling(pair: Sequence[DiffLine]) -> int:
        marked = " ".join(text for line in pair for kind, text in line.pieces if kind != "same")
        return len(changed_words & frozenset(_WORD.findall(marked.lower())))

    return max(pairs, key=telling)


def _pair(lines: Sequence[DiffLine]) -> list[DiffLine]:
    """The first line that was taken out and the first that was put in."""
    firsts = (next((line for line in lines if line.kind == kind), None) for kind in ("removed", "added"))
    return [line for line in firsts if line is not None]


def _short(line: DiffLine) -> EditLine:
    """The line around its first change."""
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
