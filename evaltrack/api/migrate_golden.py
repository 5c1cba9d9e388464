"""Give a golden set the chunk ids of a corpus that was cut anew."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from evaltrack.api.lint_golden import all_entries, libraries
from evaltrack.errors import UsageError
from evaltrack.golden.lint.finding import Entry
from evaltrack.golden.lint.library import Library
from evaltrack.golden.migration import Move, Mover, moved_fields
from evaltrack.golden.reader import GoldenSet, open_golden
from evaltrack.golden.rewrite import write_fields

Choose = Callable[[Move, Library], Sequence[str]]
"""Chooses the places of a chunk that is in doubt, given the new chunks; none leaves its question as it is."""


@dataclass(frozen=True)
class Migration:
    """What became of the expected chunks.

    Args:
        moves: Those whose place is known, old and new.
        doubts: Those whose place is in doubt; their questions keep their ids.
        changed: How many questions have other ids now.
    """

    moves: Sequence[Move]
    doubts: Sequence[Move]
    changed: int


def migrate_golden(
    path: str | os.PathLike[str],
    new_corpus: str | os.PathLike[str] | None = None,
    *,
    new_target: str | None = None,
    old_corpus: str | os.PathLike[str] | None = None,
    old_target: str | None = None,
    choose: Choose | None = None,
    dry_run: bool = False,
) -> Migration:
    """Replace the chunk ids of a golden set by those of the chunks that hold the same now.

    A chunk with the same words is the same chunk. Of the others the sentences that hold most of the expected answer and
    the question are looked for: the new chunks that hold them take the place. Every other byte of the file stays.

    Args:
        path: A `.jsonl` or `.json` golden set.
        new_corpus: Folder of pages, cut into chunks by their headings.
        new_target: ``bm25:DIR?chunk=...``, whose chunks are the new ones.
        old_corpus: As `new_corpus`, for the ids that the set has; None takes the folder beside the file.
        old_target: As `new_target`, for the ids that the set has.
        choose: Chooses where the new place is in doubt; without it such questions keep their ids.
        dry_run: Whether the file is left as it is.

    Raises:
        GoldenError: lines are bad, or the file cannot be written.
        UsageError: a corpus or a target cannot be read.
    """
    if (new_corpus is None) == (new_target is None):
        raise UsageError("name the new chunks with one of `new_corpus=` and `new_target=`")
    checked = open_golden(path, drafts=True)
    moves: list[Move] = []
    doubts: list[Move] = []
    fields: dict[int, dict[str, object]] = {}
    pairs = list(_pairs(checked, (old_corpus, old_target), (new_corpus, new_target)))
    for entry, mover, new in _movable(checked, pairs):
        question = entry.question
        keys = dict.fromkeys(question.expected_chunks or ())
        own = [_settled(mover.move(question, key), new, choose) for key in keys]
        doubtful = [move for move in own if not move.places]
        doubts += doubtful
        if not doubtful:
            moves += own
            new_fields = moved_fields(question, own)
            if new_fields["expected_chunks"] != list(question.expected_chunks or ()):
                fields[entry.number] = new_fields
    if fields and not dry_run:
        write_fields(checked.path, fields)
    return Migration(moves, doubts, len(fields))


def _pairs(
    checked: GoldenSet,
    old: tuple[str | os.PathLike[str] | None, str | None],
    new: tuple[str | os.PathLike[str] | None, str | None],
) -> Iterator[tuple[Library, Library]]:
    """Old and new chunks of the same domains.

    Raises:
        UsageError: there are no old ones.
    """
    old_parts, new_parts = ([library for library, _ in libraries(checked, *side)] for side in (old, new))
    if not old_parts:
        raise UsageError("there is no corpus beside the file; name the old chunks with `old_corpus=` or `old_target=`")
    for part in old_parts:
        both = [other for other in new_parts if part.domains & other.domains]
        yield from ((part, other) for other in both)


def _movable(checked: GoldenSet, pairs: Sequence[tuple[Library, Library]]) -> Iterator[tuple[Entry, Mover, Library]]:
    """The questions that expect chunks by a list of ids, each with what finds them."""
    entries = [entry for entry in all_entries(checked) if entry.question.expected_chunks and not entry.question.grades]
    for old, new in pairs:
        mover = Mover(old, new)
        domains = old.domains & new.domains
        yield from ((entry, mover, new) for entry in entries if entry.question.domain in domains)


def _settled(move: Move, new: Library, choose: Choose | None) -> Move:
    if move.places or choose is None:
        return move
    return replace(move, places=tuple(choose(move, new)))
