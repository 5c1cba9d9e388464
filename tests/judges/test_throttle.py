"""How fast a server is asked: places, pauses, and what `Retry-After` says."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from evaltrack.judges.throttle import FIRST_DELAY, MAX_DELAY, Throttle, delay, retry_after
from tests.files import data


def run(test: Callable[[], Awaitable[None]]) -> None:
    """Run an async test, for a few seconds at most."""
    asyncio.run(asyncio.wait_for(test(), 5))


def test_who_is_stopped_while_waiting_takes_no_place() -> None:
    async def test() -> None:
        throttle = Throttle(1)
        await throttle.enter()
        waiting = [asyncio.create_task(throttle.enter()) for _ in range(2)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.sleep(0)
        throttle.leave()
        await waiting[1]
        assert waiting[0].cancelled()

    run(test)


@pytest.mark.parametrize("first", ["leave", "cancel"])
def test_who_is_stopped_in_the_moment_of_being_let_in_gives_the_place_back(first: str) -> None:
    async def test() -> None:
        throttle = Throttle(1)
        await throttle.enter()
        stopped = asyncio.create_task(throttle.enter())
        await asyncio.sleep(0)
        for step in (throttle.leave, stopped.cancel) if first == "leave" else (stopped.cancel, throttle.leave):
            step()
        with pytest.raises(asyncio.CancelledError):
            await stopped
        await throttle.enter()

    run(test)


def test_calls_that_were_in_flight_together_halve_once() -> None:
    throttle = Throttle(16)
    sent = time.monotonic()
    for _ in range(16):
        throttle.pushed_back(sent)
    assert throttle.limit == 8
    throttle.pushed_back(time.monotonic() + 0.001)
    assert throttle.limit == 4


def test_the_limit_never_falls_below_one() -> None:
    throttle = Throttle(2)
    for second in range(10):
        throttle.pushed_back(time.monotonic() + second)
    assert throttle.limit == 1
    run(throttle.enter)


def test_a_lower_limit_counts_for_those_who_wait() -> None:
    async def test() -> None:
        throttle = Throttle(4)
        for _ in range(4):
            await throttle.enter()
        throttle.pushed_back(time.monotonic())
        waiting = asyncio.create_task(throttle.enter())
        for _ in range(2):
            throttle.leave()
            await asyncio.sleep(0)
        assert not waiting.done()
        throttle.leave()
        await waiting

    run(test)


def test_a_longer_hold_wins() -> None:
    async def test() -> None:
        throttle, start = Throttle(1), time.monotonic()
        throttle.hold(0.05)
        waiting = asyncio.create_task(throttle.enter())
        await asyncio.sleep(0)
        throttle.hold(0.2)
        throttle.hold(0.01)
        await waiting
        assert time.monotonic() - start >= 0.2

    run(test)


def date(seconds: float) -> str:
    """An HTTP date so many seconds from now."""
    return format_datetime(datetime.now(UTC) + timedelta(seconds=seconds), usegmt=True)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        *data("llm.json")["retry_after"],
        ({"retry-after": date(-60)}, 0),
    ],
)
def test_retry_after_in_every_form(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


@pytest.mark.parametrize("ahead", [30, 300])
def test_retry_after_as_a_date(ahead: int) -> None:
    seconds = retry_after({"retry-after": date(ahead)})
    assert seconds is not None
    assert ahead - 2 < seconds <= ahead


def test_delays_double_up_to_a_bound() -> None:
    for attempt, most in [(0, FIRST_DELAY), (1, 1.0), (3, 4.0), (10, MAX_DELAY), (5000, MAX_DELAY)]:
        drawn = [delay(attempt) for _ in range(200)]
        assert 0 <= min(drawn) <= max(drawn) <= most
        assert max(drawn) > most / 2
