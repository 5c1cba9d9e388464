"""Losses of which the candidate's shorter lists are the cause: it returns fewer sources for any question. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evaltrack.compare.change import Change
from evaltrack.compare.deleted import Deleted
from evaltrack.records.amount import count
from evaltrack.rows.stored_row import StoredRow

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
