"""The child processes of one function: a call goes to the one with the least to do; one that ended is replaced."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from evaltrack.errors import UsageError
from evaltrack.targets.child.calls import Calls, ProcessEndedError
from evaltrack.targets.child.process import Order, Process
from evaltrack.targets.threads import aside

END_SECONDS = 5.0
"""How long a process may take to end by itself once it is not needed any more."""

LAST_CALL_SECONDS = 60.0
"""How long it may take to answer its last call before."""

MOST_CANCELLED = 64
"""Calls given up in one process before another takes its place: threads and tasks that hang stay in it for ever."""

START_SECONDS = 600.0
"""How long a process that takes the place of another may take to import the function."""

RETIRE_SECONDS = 0.5
"""How often it is looked at whether a process that was replaced is still waited for."""

MOST_IN_VAIN = 10
"""Processes in a row that ended without having answered; after them none is started."""


class Pool:
    """`workers` processes that serve one function, started and ready; `facts` is what they tell of it.

    Raises:
        UsageError: the function cannot be imported, or a process ends at once.
    """

    def __init__(self, order: Order, what: str, workers: int = 1) -> None:
        self._order, self._what, self._workers = order, what, workers
        self._started: list[Process] = []
        self._unclaimed: set[Process] = set()
        self._calls: list[Calls] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._starting: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._endings: Counter[str] = Counter()
        self._in_vain = 0
        self.last_call: bytes | None = None
        """What each process is called with before it is ended, if anything."""
        try:
            for _ in range(workers):  # all at once: importing may take long
                self._started.append(Process(order))
            for process in self._started:
                process.wait_until_ready(what)
        except OSError as error:
            self.close()
            raise UsageError(f"{what}: its process cannot be started: {error.strerror}") from None
        except BaseException:
            self.close()
            raise

        self.facts = self._started[0].facts

    @property
    def notes(self) -> list[str]:
        """How often processes ended, and how."""
        times = sum(self._endings.values())
        if not times:
            return []
        how = ", ".join(f"{ending} ({count:,}x)" for ending, count in self._endings.most_common(3))
        return [f"the process of {self._what} ended {times:,} time{'' if times == 1 else 's'}: {how}"]

    async def call(self, payload: bytes) -> bytes:
        """What the function returns for a call, both as JSON; raises as `Calls.call` does."""
        return await (await self._least_busy()).call(payload)

    async def ready(self) -> None:
        """Wait until a process can be called, or none will be."""
        with suppress(ProcessEndedError):
            await self._least_busy()

    async def _least_busy(self) -> Calls:
        self._enter_loop()
        while True:
            self._replace()
            if self._calls:
                return min(self._calls, key=len)
            await asyncio.wait(self._starting, return_when=asyncio.FIRST_COMPLETED)

    def _enter_loop(self) -> None:
        """Processes that another event loop called cannot be called by this one."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            for calls in self._calls:
                calls.kill("was left behind")
            self._loop, self._calls, self._starting = loop, [], set()

    def _replace(self) -> None:
        """Let go of processes that ended or are worn out, and start as many others."""
        self._let_go()
        for calls in [each for each in self._calls if each.cancelled >= MOST_CANCELLED]:
            self._calls.remove(calls)
            self._background(self._retire(calls))
        while len(self._calls) + len(self._starting) < self._workers and self._in_vain < MOST_IN_VAIN:
            task = self._background(self._start())
            self._starting.add(task)
            task.add_done_callback(self._starting.discard)
        if not (self._calls or self._starting):
            last = next(reversed(self._endings))
            raise ProcessEndedError(f"its process {last}, {MOST_IN_VAIN} times in a row without an answer")

    def _let_go(self) -> None:
        """Count the processes that ended by themselves, and forget them."""
        for calls in [each for each in self._calls if each.over]:
            self._calls.remove(calls)
            self._endings[calls.ending] += 1
            self._in_vain = 0 if calls.answered else self._in_vain + 1

    def _background(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _start(self) -> None:
        """Open a process that is ready, or start one first."""
        try:
            process = self._started.pop() if self._started else await aside(self._ready_process)
        except (UsageError, OSError) as error:
            self._in_vain += 1
            self._endings[f"cannot be started again: {error}"] += 1
            return
        self._calls.append(await Calls.open(process))
        self._unclaimed.discard(process)

    def _ready_process(self) -> Process:
        process = Process(self._order)
        self._unclaimed.add(process)
        try:
            process.wait_until_ready(self._what, START_SECONDS)
        except BaseException:
            self._unclaimed.discard(process)
            raise
        return process

    async def _retire(self, calls: Calls) -> None:
        """End a process once what it was asked before has come back, or its deadline has."""
        while len(calls):  # noqa: ASYNC110 - each of them has a deadline of its own
            await asyncio.sleep(RETIRE_SECONDS)
        await self._end(calls, 0)

    async def _end(self, calls: Calls, seconds: float) -> None:
        """Have a process finish what it must, and end it."""
        if self.last_call is not None and not calls.over and calls.answered:
            with suppress(Exception):  # it may end meanwhile
                await asyncio.wait_for(calls.call(self.last_call), LAST_CALL_SECONDS)
        await calls.close(seconds)

    async def aclose(self) -> None:
        """Let all processes end, and kill those that do not."""
        for task in self._tasks:
            task.cancel()
        self._let_go()
        calls, self._calls = self._calls, []
        await asyncio.gather(*(self._end(each, END_SECONDS) for each in calls))
        self.close()

    def close(self) -> None:
        """Kill the processes that were never called."""
        for process in (*self._started, *self._unclaimed):
            process.abandon()
        self._started = []
