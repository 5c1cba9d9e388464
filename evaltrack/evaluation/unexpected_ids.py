"""Whether what is expected ever comes back: ids of another form than the target's make every question a miss."""

from __future__ import annotations

from collections.abc import Callable

from evaltrack.errors import Guide
from evaltrack.metrics.relevance import expected_of, relevant_keys, source_keys
from evaltrack.records import Row

ENOUGH = 10
"""Answerable questions after which it is said that nothing that they expect came back."""

SHOWN = 60
"""Characters of an id that are shown."""


class Returned:
    """Looks at the answerable questions as they are measured, until the first expected source comes back."""

    def __init__(self, warn: Callable[[str], object]) -> None:
        self._warn = warn
        self._measured = 0
        self._came_back = False
        self._example = ""

    def add(self, row: Row) -> None:
        """Take one finished question; what came back beyond the first k counts, too."""
        if self._came_back or row.response is None or "hit" not in row.scores:
            return
        keys = source_keys(row.question, row.response.sources or ())
        by_name = row.finds is None
        self._came_back = not relevant_keys(row.question).isdisjoint(keys) if by_name else any(row.finds or ())
        self._measured += 1
        examples = [key for key in keys if not key.startswith("\0")]
        if examples and not self._example:
            expected = min(expected_of(row) or ())
            self._example = f"expected {expected[:SHOWN]}, returned e.g. {examples[0][:SHOWN]}"
        if self._measured == ENOUGH and (note := self.note):
            self._warn(note)

    @property
    def note(self) -> str | None:
        """What is said of enough questions of which none ever got what it expects, where anything came back at all."""
        if self._came_back or self._measured < ENOUGH or not self._example:
            return None
        questions = f"{self._measured:,} questions"
        what = f"no expected source of {questions} ever came back: {self._example}; are the ids those of the target?"
        return f"{what} {Guide.IDS.reference}"
