"""A document before and after, as a code review shows a file: numbered lines, what went and came, words marked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest
from typing import Literal

from evaltrack.records.amount import count
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
        pairs = list(zip_longest(range(i, j), range(m, n)))
        removed = [_removed(old, new, place, other) for place, other in pairs if place is not None]
        yield from removed
        yield from (_added(old, new, place, other) for place, other in pairs if other is not None)


def _removed(old: Sequence[str], new: Sequence[str], place: int, other: int | None) -> DiffLine:
    pieces = _pieces(old[place], None if other is None else new[other], "removed")
    return DiffLine("removed", place + 1, None, pieces)


def _added(old: Sequence[str], new: Sequence[str], place: int | None, other: int) -> DiffLine:
    pieces = _pieces(None if place is None else old[place], new[other], "added")
    return DiffLine("added", None, other + 1, pieces)


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
        near = set(range(min(len(rows), 2 * CONTEXT)))
    return list(_with_gaps(rows, near))


def _with_gaps(rows: Sequence[DiffLine], near: Iterable[int]) -> Iterator[DiffLine]:
    wanted, left_out = set(near), 0
    for place, row in enumerate(rows):
        if place in wanted:
            if left_out:
                yield _gap(left_out)
                left_out = 0
            yield row
        else:
            left_out += 1
    if left_out:
        yield _gap(left_out)


def _gap(lines: int) -> DiffLine:
    return DiffLine("gap", None, None, (("same", f"{count(lines, 'line')} the same"),))
