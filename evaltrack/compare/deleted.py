"""Sources without which a target declines: they are told from what a raised floor cuts off. Pure.

A floor cuts off the end of a list. Of what was deleted other questions still return what stood below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Set
from functools import cached_property

from evaltrack.compare.change import Cause, Change
from evaltrack.compare.pages import page_of_chunk
from evaltrack.records.passage import title_key
from evaltrack.rows.stored_parts import StoredSource
from evaltrack.rows.stored_row import StoredRow


class Deleted:
    """The sources, and pages, that were deleted, by the rows of the common questions; looked for when first needed.

    A source was deleted if the candidate returns it for no question, and in one of them still returns a source that
    stood below it.
    """

    def __init__(self, before: Iterable[StoredRow], after: Iterable[StoredRow]) -> None:
        self._before, self._after = before, after

    def holds(self, change: Change, loss: Cause) -> bool:
        """Whether the source that a question lost is one of them, or of such a page."""
        return not self._keys.isdisjoint(_keys_of_lost(change, loss))

    @cached_property
    def _keys(self) -> Set[str]:
        now = {row.id: row for row in self._after}
        returned = {key for row in now.values() for source in row.sources or () for key in _keys(source)}
        return {key for row in self._before for key in _cut_out(row, now.get(row.id))} - returned


def declined_for(worse: Iterable[Change], deleted: Deleted) -> dict[str, Cause]:
    """Of each question that the target declines for want of a deleted source its loss, by the question's id."""
    declined: dict[str, Cause] = {}
    for change in worse:
        for loss in _losses(change) if change.cause.kind == "now_declines" else ():
            if deleted.holds(change, loss):
                declined.setdefault(change.id, loss)
    return declined


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
