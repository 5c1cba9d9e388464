"""How fast a server may be asked: calls in flight, and pauses."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

FIRST_DELAY, MAX_DELAY = 0.5, 30.0
"""Seconds before a retry: random up to a bound that doubles from the first to the last."""


class Throttle:
    """How many calls may be in flight: halved when the server pushes back, one more after each round that succeeds."""

    def __init__(self, limit: int) -> None:
        self.limit = float(limit)
        self._most = limit
        self._in_flight = 0
        self._halved_at = 0.0
        self._held_until = 0.0
        self._free = asyncio.Condition()

    def turn(self) -> _Turn:
        """An async context: a place among the calls in flight, after any wait the server asked for."""
        return _Turn(self)

    async def enter(self) -> None:
        """Wait for a place."""
        while True:
            async with self._free:
                await self._free.wait_for(lambda: self._in_flight < max(1, int(self.limit)))
                wait = self._held_until - time.monotonic()
                if wait <= 0:
                    self._in_flight += 1
                    return
            await asyncio.sleep(wait)

    async def leave(self) -> None:
        """Give the place back."""
        async with self._free:
            self._in_flight -= 1
            self._free.notify_all()

    def succeeded(self) -> None:
        """A call came back well: additive increase."""
        self.limit = min(self._most, self.limit + 1 / max(self.limit, 1))

    def pushed_back(self) -> None:
        """The server said 429: multiplicative decrease, once for all calls that were in flight together."""
        now = time.monotonic()
        if now - self._halved_at > 1:
            self._halved_at = now
            self.limit = max(1.0, self.limit / 2)

    def hold(self, seconds: float) -> None:
        """Nobody calls for so long; each is let go a little apart."""
        self._held_until = max(self._held_until, time.monotonic() + seconds + random.uniform(0, 0.05))  # noqa: S311


@dataclass
class _Turn:
    throttle: Throttle

    async def __aenter__(self) -> None:
        await self.throttle.enter()

    async def __aexit__(self, *exc_info: object) -> None:
        await asyncio.shield(self.throttle.leave())


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds the server asks to wait: `retry-after-ms`, or `Retry-After` in seconds or as an HTTP date (RFC 9110)."""
    try:
        if "retry-after-ms" in headers:
            return max(0.0, float(headers["retry-after-ms"]) / 1000)
        value = headers.get("retry-after")
        if value is None:
            return None
        if value.strip().replace(".", "", 1).isdigit():
            return float(value)
        return max(0.0, parsedate_to_datetime(value).timestamp() - time.time())
    except ValueError:
        return None


def delay(attempt: int) -> float:
    """Seconds before the next attempt (the first is 0): full jitter, so that calls that failed together come apart."""
    return random.uniform(0, min(MAX_DELAY, FIRST_DELAY * 2**attempt))  # noqa: S311 - jitter, no secret
