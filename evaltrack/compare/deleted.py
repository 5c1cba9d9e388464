"""Sources without which a target declines: they are told from what a raised floor cuts off. Pure.

A floor cuts off the end of a list. Of what was deleted other questions still return what stood below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set

from evaltrack.compare.change import Cause, Change
from evaltrack.compare.pages import page_of_chunk
from evaltrack.records.titles import title_key
from evaltrack.rows.stored_parts import StoredSource
from evaltrack.rows.stored_row import StoredRow


def declined_for(worse: Sequence[Change], before: Iterable[StoredRow], after: Iterable[StoredRow]) -> dict[str, Cause]:
    """Of each question that the target declines for want of a deleted source its loss, by the question's id.

    A chunk, or a page, was deleted if the candidate returns it for no question, and in one of them still returns a
    source that stood below it. `before` and `after` are the rows of all common questions.
    """
    losses = [(change, loss) for change in worse if change.cause.kind == "now_declines" for loss in _losses(change)]
    if not losses:
        return {}
    deleted = deleted_keys(before, after)
    declined: dict[str, Cause] = {}
    for change, loss in losses:
        if is_deleted(change, loss, deleted):
            declined.setdefault(change.id, loss)
    return declined


def deleted_keys(before: Iterable[StoredRow], after: Iterable[StoredRow]) -> Set[str]:
    """The keys of the sources, and pages, that were deleted, by the rows of all common questions."""
    now = {row.id: row for row in after}
    returned = {key for row in now.values() for source in row.sources or () for key in _keys(source)}
    return {key for row in before for key in _cut_out(row, now.get(row.id))} - returned


def is_deleted(change: Change, loss: Cause, deleted: Set[str]) -> bool:
    """Whether the source that a question lost is among those that were deleted."""
    return not deleted.isdisjoint(_keys_of_lost(change, loss))


def _losses(change: Change) -> list[Cause]:
    """The expected sources that are no longer returned."""
    return [cause for cause in change.also if cause.kind == "source_lost" and cause.source]


def _keys_of_lost(change: Change, loss: Cause) -> Iterator[str]:
    before = change.before
    for source in (before.sources if before else None) or ():
        if before and before.name_of(source) == loss.source:
            yield from _keys(source)


def _keys(source: StoredSource) -> tuple[str, str]:
    """What a source compares by, and its page: by its title, else by what its id has in common with other chunks."""
    name = source.chunk_id or source.title or ""
    return title_key(name), title_key(source.title or page_of_chunk(name))


def _cut_out(before: StoredRow, after: StoredRow | None) -> set[str]:
    """The keys of sources that stood above one that is still returned, and are not."""
    now = {_keys(source)[0] for source in (after.sources if after else None) or ()}
    was = [_keys(source) for source in before.sources or ()]
    last = max((place for place, (key, _) in enumerate(was) if key in now), default=0)
    return {each for keys in was[:last] if keys[0] not in now for each in keys}
