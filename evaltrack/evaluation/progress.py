"""What an evaluation tells while it goes on, and how fast it is."""

from __future__ import annotations

import time
from typing import Any, Protocol, runtime_checkable

from evaltrack.records import Row
from evaltrack.records.row import seconds_now


class Progress(Protocol):
    """Receives the progress of an evaluation. All calls come from one thread."""

    def start(self, total: int) -> None:
        """The run is open and `total` questions are about to be asked."""

    def advance(self, row: Row) -> None:
        """One question finished."""

    def note(self, phrase: str, done: int, total: int) -> None:
        """Something else is under way; `total` is 0 where it is not known."""

    def warn(self, text: str) -> None:
        """Something is likely wrong; said once, while there is time to stop."""


@runtime_checkable
class RunProgress(Protocol):
    """What a `Progress` may have besides."""

    def opened(self, run_id: str, resuming: str) -> None:
        """A run is open, and nothing is asked yet; `resuming` is the command that goes on with it, if one can."""


class Silent:
    """A `Progress` that says nothing."""

    def start(self, *_: Any, **__: Any) -> None:
        """Say nothing."""

    advance = note = warn = start


class Pace:
    """The speed since `start`, of `total` questions."""

    def __init__(self) -> None:
        self.start(0)

    def start(self, total: int) -> None:
        """Begin at 0."""
        self.done = self.earlier = self.errors = 0
        self.total, self._start, self._started_at = total, time.monotonic(), seconds_now()

    def add(self, row: Row) -> bool:
        """Count a finished question; returns whether its row was there before the start."""
        is_earlier = row.started_at < self._started_at
        self.done += 1
        self.earlier += is_earlier
        self.errors += row.failure is not None
        return is_earlier

    @property
    def rate(self) -> float:
        """Questions that were asked in a second; 0 where none was yet."""
        return (self.done - self.earlier) / max(time.monotonic() - self._start, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        """For the other questions at this speed; None where no question was asked yet."""
        return (self.total - self.done) / self.rate if self.rate else None
