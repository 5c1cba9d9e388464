"""How fast a server may be asked: calls in flight, and pauses."""

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
"""Seconds before a retry: random up to a bound that doubles from the first to the last."""


class Throttle:
    """How many calls may be in flight: halved when the server pushes back, one more after each round that succeeds.

    Those who wait are let in one by one in the order they came, so that thousands may wait. Use on one event loop.
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
        """A place among the calls in flight, after any wait the server asked for; gives the monotonic time of it."""
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
                self.leave()  # it was let in and stopped in the same moment
            elif place in self._waiting:
                self._waiting.remove(place)
            raise

    def leave(self) -> None:
        """Give the place back."""
        self._in_flight -= 1
        self._let_in()

    def succeeded(self) -> None:
        """A call came back well: additive increase."""
        self.limit = min(self._most, self.limit + 1 / self.limit)

    def pushed_back(self, since: float) -> None:
        """The server said 429 to a call of the monotonic time `since`: multiplicative decrease.

        Calls that were in flight together halve once: those from before the last halving tell nothing of the new limit.
        """
        if since > self._halved_at:
            self._halved_at = time.monotonic()
            self.limit = max(1.0, self.limit / 2)

    def hold(self, seconds: float, why: str = "") -> None:
        """Nobody calls for so long, and a moment more so that clocks may differ; a longer pause goes on."""
        until = time.monotonic() + seconds + random.uniform(0, 0.05)  # noqa: S311
        if until > self._held_until:
            self._held_until, self._why_held = until, why

    @property
    def pause_reason(self) -> str | None:
        """Why no call may be made now; None where calls may go."""
        return self._why_held if time.monotonic() < self._held_until else None

    def _let_in(self) -> None:
        """Let in as many as there are places, or wake when the pause is over."""
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
    """Seconds the server asks to wait: `retry-after-ms`, or `Retry-After` in seconds or as an HTTP date (RFC 9110).

    None where it asks for nothing, or for nothing that can be read.
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
    """Seconds before the next attempt (the first is 0): full jitter, so that calls that failed together come apart."""
    return random.uniform(0, min(MAX_DELAY, FIRST_DELAY * 2 ** min(attempt, 16)))  # noqa: S311 - jitter, no secret
