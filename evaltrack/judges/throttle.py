"""Limits how fast a server is asked: calls in flight, and pauses."""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections import deque
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
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._alarm: asyncio.TimerHandle | None = None

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[float]:
        """Wait for a place among the calls in flight, and for any pause. Yield the monotonic time of admission."""
        await self.enter()
        try:
            yield time.monotonic()
        finally:
            self.leave()

    async def enter(self) -> None:
        """Wait for a place."""
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        self._let_in()
        try:
            await place
        except asyncio.CancelledError:
            if not place.cancelled():
                self.leave()  # it was admitted and cancelled at the same moment
            elif place in self._waiting:
                self._waiting.remove(place)
            raise

    def leave(self) -> None:
        """Give the place back."""
        self._in_flight -= 1
        self._let_in()

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

    def _let_in(self) -> None:
        """Admit as many calls as there are places, or set an alarm for the end of the pause."""
        wait = self._held_until - time.monotonic()
        if wait > 0 and self._waiting:
            if self._alarm is None:
                self._alarm = asyncio.get_running_loop().call_later(wait, self._wake)
            return
        while self._waiting and self._in_flight < int(self.limit):
            place = self._waiting.popleft()
            if not place.done():
                self._in_flight += 1
                place.set_result(None)

    def _wake(self) -> None:
        self._alarm = None
        self._let_in()


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
