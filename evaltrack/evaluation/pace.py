"""How fast this process asks: rows that were there before it are finished questions, and none that it asked."""

from __future__ import annotations

import time

from evaltrack.records import Row
from evaltrack.records.clock import seconds_now


class Pace:
    """The speed since `start`, of `total` questions."""

    def __init__(self) -> None:
        self.start(0)

    def start(self, total: int) -> None:
        """Begin anew."""
        self.done = self.earlier = 0
        self.total, self._start, self._started_at = total, time.monotonic(), seconds_now()

    def add(self, row: Row) -> bool:
        """Count a finished question; returns whether its row was there before the start."""
        is_earlier = row.started_at < self._started_at
        self.done += 1
        self.earlier += is_earlier
        return is_earlier

    @property
    def rate(self) -> float:
        """Questions that were asked in a second; 0 where none was yet."""
        return (self.done - self.earlier) / max(time.monotonic() - self._start, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        """For the other questions at this speed; None where no question was asked yet."""
        return (self.total - self.done) / self.rate if self.rate else None
