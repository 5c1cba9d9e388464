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
    asyncio.run(asyncio.wait_for(test(), 5))


class Caller:
    """A call in a task of its own, in flight from its admission until `leave`."""

    def __init__(self, throttle: Throttle) -> None:
        self.is_in, self._ends = asyncio.Event(), asyncio.Event()
        self.task = asyncio.create_task(self._call(throttle))

    async def _call(self, throttle: Throttle) -> None:
        async with throttle.turn():
            self.is_in.set()
            await self._ends.wait()

    async def leave(self) -> None:
        self._ends.set()
        await self.task


async def callers(throttle: Throttle, number: int, let_in: int) -> list[Caller]:
    made = [Caller(throttle) for _ in range(number)]
    await asyncio.sleep(0.01)
    assert [caller.is_in.is_set() for caller in made] == [True] * let_in + [False] * (number - let_in)
    return made


@pytest.mark.parametrize("when", ["waits", "place is free", "is let in"])
def test_who_is_stopped_takes_no_place(when: str) -> None:
    async def test() -> None:
        throttle = Throttle(1)
        first, stopped, last = await callers(throttle, 3, let_in=1)
        if when == "waits":
            stopped.task.cancel()
            await asyncio.sleep(0.01)
        leaving = asyncio.create_task(first.leave())
        if when == "is let in":
            await stopped.is_in.wait()
        elif when == "place is free":
            await asyncio.sleep(0)
        stopped.task.cancel()
        await leaving
        await last.is_in.wait()
        assert stopped.task.cancelled()
        await last.leave()

    run(test)


def test_calls_that_were_in_flight_together_halve_once() -> None:
    throttle = Throttle(16)
    sent = time.monotonic()
    for _ in range(16):
        throttle.pushed_back(sent)
    assert throttle.limit == 8
    for second in range(10):
        throttle.pushed_back(time.monotonic() + 1 + second)
    assert throttle.limit == 1

    async def test() -> None:
        (alone,) = await callers(throttle, 1, let_in=1)
        await alone.leave()

    run(test)


def test_a_lower_limit_counts_for_those_who_wait() -> None:
    async def test() -> None:
        throttle = Throttle(4)
        *inside, waiting = await callers(throttle, 5, let_in=4)
        throttle.pushed_back(time.monotonic())
        for number, caller in enumerate(inside, start=1):
            await caller.leave()
            await asyncio.sleep(0.01)
            assert waiting.is_in.is_set() == (number > 2)
        await waiting.leave()

    run(test)


def test_a_longer_hold_wins() -> None:
    async def test() -> None:
        throttle, start = Throttle(1), time.monotonic()
        throttle.hold(0.05)
        (waiting,) = await callers(throttle, 1, let_in=0)
        throttle.hold(0.2)
        throttle.hold(0.01)
        await waiting.is_in.wait()
        assert time.monotonic() - start >= 0.2
        await waiting.leave()

    run(test)


def date(seconds: float) -> str:
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
