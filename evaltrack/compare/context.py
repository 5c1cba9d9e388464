"""What is other about the first k sources of a question, in words: what is new, what is gone, or only the order. Pure.

Sources are told apart by the names that people read, so that no sentence says that a source is new and gone at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from evaltrack.compare.differences import Differences
from evaltrack.compare.ranks import in_order
from evaltrack.records.passage import title_key
from evaltrack.rows.stored_parts import StoredSource
from evaltrack.rows.stored_row import StoredRow


@dataclass(frozen=True)
class Place:
    """A source, where it stands, and whether it is an expected one."""

    source: StoredSource
    rank: int
    expected: bool


@dataclass(frozen=True)
class Context:
    """The sources of both sides, each once under what it is told apart by."""

    rows: Differences

    @cached_property
    def was(self) -> dict[str, Place]:
        """Those of the baseline, the best first."""
        return _places(self.rows.before, self.rows)

    @cached_property
    def now(self) -> dict[str, Place]:
        """Those of the candidate."""
        return _places(self.rows.after, self.rows)

    @cached_property
    def arrived(self) -> list[StoredSource]:
        """The unexpected sources that are among the first k and were not, the best first.

        What only moved up into a gap that an expected source left is none of them. Of a baseline that reports no
        sources none is known to be new.
        """
        if self.rows.before.sources is None:
            return []
        came = self._missing(self.now, self.was)
        return [self.now[each].source for each in came if not self._expected(each) and self._rose(each, self.now)]

    def words(self) -> str:
        """What the answer rests on now, to follow "on": ``the same sources without `a` ``; the first k differ."""
        if self.rows.same_order:
            return "the same sources with other texts"
        if None in (self.rows.before.sources, self.rows.after.sources):
            when = "does not report" if self.rows.after.sources is None else "did not report before"
            return f"sources that it {when}"
        if not self.now:
            return "no sources"
        both = self._first(self.was).keys() & self._first(self.now).keys()
        fresh = self.arrived if both else [each.source for each in self._first(self.now).values()]
        if fresh:
            are = "is" if len(fresh) == 1 else "are"
            return f"other sources: {self._listed(fresh)} {are} new among the first {self.rows.k}"
        was, now = ([name for name in self._first(side) if name in both] for side in (self.was, self.now))
        if came_or_went := self._came_and_went():
            return f"the same sources{came_or_went}{', the others in another order' * (was != now)}"
        return "the same sources in another order" if self._reordered(was, now) else "other parts of the same pages"

    def _came_and_went(self) -> str:
        """`` and `b`, without `a` ``: which expected ones came, and which went; what was only pushed out did not."""
        came, went = self._missing(self.now, self.was), self._missing(self.was, self.now)
        added = [self.now[each].source for each in came if self._expected(each)]
        gone = [self.was[each].source for each in went if self._expected(each) or self._rose(each, self.was)]
        words = f" and {self._listed(added)}" if added else ""
        return words + (f"{',' * bool(added)} without {self._listed(gone)}" if gone else "")

    def _missing(self, side: dict[str, Place], other: dict[str, Place]) -> list[str]:
        """What is among the first k of one side and not of the other."""
        first = self._first(other)
        return [name for name in self._first(side) if name not in first]

    def _first(self, side: dict[str, Place]) -> dict[str, Place]:
        return {name: each for name, each in side.items() if each.rank <= self.rows.k}

    def _rose(self, name: str, side: dict[str, Place]) -> bool:
        """Whether an unexpected source is on this side alone, or stands higher on it among those that both returned."""
        other = self.was if side is self.now else self.now
        if name not in other:
            return True
        shared = [each for each in side if each in other and not self._expected(each)]
        return shared.index(name) < [each for each in other if each in shared].index(name)

    def _expected(self, name: str) -> bool:
        return any(side[name].expected for side in (self.was, self.now) if name in side)

    def _reordered(self, was: Sequence[str], now: Sequence[str]) -> bool:
        """Whether the same parts came back in another order, rather than others of the same pages."""
        sides = (self.rows.before, self.rows.after)
        parts = [
            [(each.chunk_id or "", each.title or "") for each in (row.sources or ())[: self.rows.k]] for row in sides
        ]
        return was != now or sorted(parts[0]) == sorted(parts[1])

    def _listed(self, sources: Sequence[StoredSource]) -> str:
        """```x` and 2 more``."""
        more = f" and {len(sources) - 1:,} more" if len(sources) > 1 else ""
        return f"`{self.rows.name(sources[0])}`{more}"


def _places(row: StoredRow, rows: Differences) -> dict[str, Place]:
    places: dict[str, Place] = {}
    for rank, keys, source in in_order(row):
        expected = any(key in rows.expected for key in keys)
        places.setdefault(_identity(row, source), Place(source, rank, expected))
    return places


def _identity(row: StoredRow, source: StoredSource) -> str:
    """What a source is told apart by: its name, as titles are compared where they are; else what it has."""
    name = row.name_of(source)
    if name == "?":
        return source.chunk_id or source.text_digest or name
    return title_key(name) if row.by_title else name
