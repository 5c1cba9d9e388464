"""Which page a source belongs to, which were deleted, and what a shorter list of sources cuts off. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from evaltrack.compare.change import Cause, Change
from evaltrack.records.amount import count
from evaltrack.records.passage import title_key
from evaltrack.rows.stored_parts import StoredSource
from evaltrack.rows.stored_row import StoredRow


class Pages:
    """The pages of sources, where chunks without titles share one if the candidate returns none of it any more.

    Such chunks share what stands before `#` in their ids.
    """

    def __init__(self, worse: Sequence[Change], now: Iterable[StoredRow], *, whole: bool) -> None:
        self._whole = whole
        lost = _lost_parts(worse)
        sources = [source for row in now for source in row.sources or ()] if lost else []
        returned = {page_of_chunk(source.chunk_id) for source in sources}
        self._titles = {title_key(title) for title in {source.title for source in sources} if title}
        deleted = {page for page, parts in lost.items() if whole and len(parts) > 1 and page not in returned}
        self._deleted = {part: page for page in deleted for part in lost[page]}

    def of(self, name: str | None, change: Change) -> str | None:
        """The title of a source, where a row of the question knows it; else its deleted page, else its name."""
        rows = [row for row in (change.after, change.before) if row is not None]
        titles = (each.title for row in rows for each in row.sources or () if name and row.name_of(each) == name)
        return next(filter(None, titles), self._deleted.get(name or "", name))

    def remains(self, title: str) -> bool:
        """Whether the candidate may return something under this title for any question."""
        return not self._whole or title_key(title) in self._titles


ENOUGH = 10
"""Sources on either side from which it is no chance that both have none in common."""


def ids_made_anew(before: Iterable[StoredRow], after: Iterable[StoredRow]) -> bool:
    """Whether many sources were returned on either side, and none on both: all have other ids, or were cut anew."""
    was, now = ({row.name_of(source) for row in rows for source in row.sources or ()} for rows in (before, after))
    return min(len(was), len(now)) >= ENOUGH and was.isdisjoint(now)


def _lost_parts(worse: Sequence[Change]) -> Mapping[str, set[str]]:
    """The names of the sources that are no longer returned for these questions, by what stands before `#` in them."""
    parts: dict[str, set[str]] = defaultdict(set)
    for change in worse:
        for cause in (change.cause, *change.also):
            if cause.kind == "source_lost" and cause.source:
                parts[page_of_chunk(cause.source)].add(cause.source)
    return parts


def page_of_chunk(chunk_id: str | None) -> str:
    """What the chunks of a page share where they have no titles; all of an id without `#`."""
    page, _, _ = (chunk_id or "").partition("#")
    return page or chunk_id or ""


class Deleted:
    """The sources, and pages, that were deleted, by the rows of the common questions; looked for when first needed.

    A source was deleted if the candidate returns it for no question, and in one of them still returns a source that
    stood below it. A raised floor cuts off the end of a list, and nothing below it is returned.
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


SEVERAL = 2
"""Questions that must have had more sources: a single longer list is no habit of the target."""


@dataclass(frozen=True)
class FewerSources:
    """The most sources that either side returns for a question, and what was deleted, which is lost for that reason."""

    before: int
    after: int
    deleted: Deleted

    def explains(self, change: Change) -> bool:
        """Whether all that was lost stood beyond the candidate's longest list, or is all that the answer lacks."""
        cause = change.cause
        if cause.kind == "source_lost":
            return (cause.rank_before or 0) > self.after and not self.deleted.holds(change, cause)
        return cause.kind == "context_changed" and self._cut_off(change)

    def _cut_off(self, change: Change) -> bool:
        """Whether the candidate's sources are the first of those of the baseline, and as many as it ever returns."""
        if change.before is None or change.after is None:
            return False
        was, now = (_names(row) for row in (change.before, change.after))
        return self.after == len(now) < len(was) and was[: len(now)] == now

    @property
    def words(self) -> str:
        """Both numbers, in a sentence."""
        return f"the target returns at most {count(self.after, 'source')} now, where it returned up to {self.before:,}"


def fewer_sources(before: Iterable[StoredRow], after: Iterable[StoredRow], deleted: Deleted) -> FewerSources | None:
    """What the candidate returns at most, where that is less than for several questions of the baseline, and not 0."""
    was, now = ([len(row.sources or ()) for row in rows] for rows in (before, after))
    most = max(now, default=0)
    if not most or sum(number > most for number in was) < SEVERAL:
        return None
    return FewerSources(max(was), most, deleted)


def _names(row: StoredRow) -> Sequence[str]:
    return [row.name_of(source) for source in row.sources or ()]
