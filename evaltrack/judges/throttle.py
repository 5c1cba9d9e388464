"""Limits how fast a server is asked: calls in flight, and pauses."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from email.utils import parsedate_to_datetime

FIRST_DELAY, MAX_DELAY = 0.5, 30.0
"""Seconds before a retry: random up to a bound that doubles from the first value to the second."""


class Throttle:
    """The limit of calls in flight. It halves when the server pushes back, and grows by one after a successful round.

    Waiting calls are admitted one by one in order of arrival, so that thousands may wait. Use it on one event loop.
    """

    def __init__(self, limit: int) -> None:
        self.limit = float(limit)
        self._most = limit
        self._in_flight = 0
        self._halved_at = -math.inf
        self._held_until = -math.inf
        self._why_held = ""
        self._is_next = asyncio.Lock()
        self._has_left = asyncio.Event()

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[float]:
        """Wait for a place among the calls in flight, and for any pause. Yield the monotonic time of admission."""
        async with self._is_next:
            while (wait := self._held_until - time.monotonic()) > 0 or self._in_flight >= int(self.limit):
                if wait > 0:
                    await asyncio.sleep(wait)
                else:
                    self._has_left.clear()
                    await self._has_left.wait()
            self._in_flight += 1
        try:
            yield time.monotonic()
        finally:
            self._in_flight -= 1
            self._has_left.set()

    def succeeded(self) -> None:
        """Raise the limit after a successful call: additive increase."""
        self.limit = min(self._most, self.limit + 1 / self.limit)

    def pushed_back(self, since: float) -> None:
        """Lower the limit after a 429 to a call of the monotonic time `since`: multiplicative decrease.

        Calls that were in flight together halve it once. Calls from before the last halving do not reflect the new
        limit.
        """
        if since > self._halved_at:
            self._halved_at = time.monotonic()
            self.limit = max(1.0, self.limit / 2)

    def hold(self, seconds: float, why: str = "") -> None:
        """Pause all calls, slightly longer than asked because clocks differ. A longer pause stays in force."""
        until = time.monotonic() + seconds + random.uniform(0, 0.05)  # noqa: S311
        if until > self._held_until:
            self._held_until, self._why_held = until, why

    @property
    def pause_reason(self) -> str | None:
        """The reason why no call may be made now; None if calls may be made."""
        return self._why_held if time.monotonic() < self._held_until else None


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds of the requested pause: `retry-after-ms`, or `Retry-After` in seconds or as a date (RFC 9110).

    None if no pause is requested, or if it cannot be read.
    """
    seconds = _number(headers.get("retry-after-ms"))
    if seconds is not None:
        return seconds / 1000
    value = headers.get("retry-after")
    seconds = _number(value)
    if value is None or seconds is not None:
        return seconds
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError, OSError):
        return None


def _number(text: str | None) -> float | None:
    try:
        number = float(text) if text else -1.0
    except ValueError:
        return None
    return number if 0 <= number < math.inf else None


def delay(attempt: int) -> float:
    """Return the seconds before the next attempt (the first is 0). Full jitter spreads calls that failed together."""
    return random.uniform(0, min(MAX_DELAY, FIRST_DELAY * 2 ** min(attempt, 16)))  # noqa: S311 - jitter, no secret
