"""Which page a source belongs to, and which pages were deleted: the candidate returns none of their chunks. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from evaltrack.compare.change import Change
from evaltrack.records.passage import title_key
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
