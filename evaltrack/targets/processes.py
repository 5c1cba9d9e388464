"""A user's function in processes of its own, so that nothing it does can end, alter or hold up an evaluation.

`evaltrack.targets.child` runs inside of them. A process makes many calls at a time, which those of the standard
library's pools do not: one is enough for a function that waits for servers. An event loop in a thread of its own
speaks to all processes.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import re
import sys
import threading
from codecs import getincrementaldecoder
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, TypeVar

from evaltrack.errors import Guide, UsageError
from evaltrack.records import Question, Response, Usage
from evaltrack.records.base import Record
from evaltrack.records.response import TracePlace
from evaltrack.records.roles import Closable
from evaltrack.system.processes import kill_group, own_group
from evaltrack.targets.child import GOODBYE, INVALID, MOST_BYTES, OUT_OF_MEMORY, READY, REFUSED, RESULT
from evaltrack.targets.failures import InvalidResponseError, RaisedElsewhereError, ending

T = TypeVar("T")

BOOTSTRAP = (
    "import json, sys; order = json.loads(sys.stdin.buffer.readline()); sys.path[:] = order.pop('path'); "
    "sys.argv = ['evaltrack']; from evaltrack.targets.child import main; main(order)"
)
"""It searches the same folders for modules as the parent does."""

START_SECONDS = 600.0
"""How long a process may take to import the function."""

UNHEARD_SECONDS = 5.0
"""How long a cancelled call may go without an answer before its process, which is held up, is killed."""

FINISH_SECONDS, END_SECONDS = 60.0, 5.0
"""How long a process may take to end, and one in which calls were late."""

DRAIN_SECONDS = 1.0
"""How long a process and its answers may outlive each other."""

LOOK_SECONDS = 0.02
"""Between two looks at the state of a process."""

MOST_CANCELLED = 64
"""Cancelled calls after which a process is killed: threads that hang stay in it for ever."""

TO_TERMINALS = re.compile(r"\x1b\[[\d;]*m|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""Colours, and all other characters by which a terminal is told what to do."""

MOST_IN_VAIN = 20
"""Processes in a row that ended without an answer; after them none is started."""


@dataclass(frozen=True)
class Order:
    """What a process serves: the user's function `place`, made to answer calls by `opener`.

    Both are written ``package.module:name``. `memory` is in bytes. `store` is the MLflow store of the run, where it is
    not the one that its environment leads to.
    """

    place: str
    opener: str
    memory: int | None = None
    store: str | None = None


class ResponseCall(Record):
    """What the process of a judge or of a score is given."""

    question: Question
    response: Response


class ProcessEndedError(RuntimeError):
    """The process of a function ended before it had answered."""


class InterruptedCallError(ProcessEndedError):
    """The process ended, maybe by another call in it: `pool` can make this call again, alone in a process."""

    def __init__(self, text: str, pool: Pool) -> None:
        super().__init__(text)
        self.pool = pool


async def asked_twice(ask: Callable[[], Awaitable[T]]) -> T:
    """What `ask` gives; where the process of its function ended, what it gives alone in a process."""
    try:
        return await ask()
    except InterruptedCallError as error:
        async with error.pool.alone():
            return await ask()


class Process(asyncio.SubprocessProtocol):
    """One process and the calls that wait for it. Only `kill` is called from outside of the loop of `_loop`."""

    def __init__(self, order: Order) -> None:
        self.facts: dict[str, Any] | None = None
        """What the process told of its function; None before it can be called."""
        self.problem: UsageError | None = None
        self.waiting: dict[int, asyncio.Future[bytes]] = {}
        self.answered = self.cancelled = 0
        self.over = asyncio.Event()
        self._order, self._why = order, ""
        self._unheard: set[int] = set()
        self._numbers = itertools.count(1)
        self._answers, self._printed = bytearray(), getincrementaldecoder("utf-8")("replace")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Say what to serve."""
        self._transport: Any = transport
        self._send(json.dumps({**asdict(self._order), "path": sys.path}).encode())
        self._kill_later(START_SECONDS, lambda: self.facts is None, f"was not ready within {START_SECONDS:g} s")

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Take answers, and write to stderr what the function prints, without commands to a terminal."""
        if fd == 2:
            with suppress(OSError, ValueError):  # stderr may be closed
                sys.stderr.write(TO_TERMINALS.sub("", self._printed.decode(data)))
                sys.stderr.flush()
            return
        self._answers += data
        try:
            if b"\n" in data:
                *lines, self._answers = self._answers.split(b"\n")
                for line in lines:
                    self._take(*map(bytes, line.split(b" ", 2)))
            elif len(self._answers) > 2 * MOST_BYTES:
                raise ValueError
        except (ValueError, KeyError, TypeError, RecursionError):
            self.kill("sent what is no answer, and was killed")

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - of the protocol
        """End a process that answers no more."""
        if fd == 1:
            self._kill_later(DRAIN_SECONDS, lambda: True, "closed its pipe, and was killed")

    def process_exited(self) -> None:
        """End what it left behind, which may hold its pipes open."""
        kill_group(self._transport.get_pid())
        asyncio.get_running_loop().call_later(DRAIN_SECONDS, self.connection_lost, None)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - of the protocol
        """Fail the calls that wait."""
        self.over.set()
        self._transport.close()
        for future in self.waiting.values():
            if not future.done():
                future.set_exception(ProcessEndedError(f"its process {self.ending}"))

    def _take(self, number: bytes, word: bytes, body: bytes) -> None:
        if word == READY:
            self.facts = json.loads(body)
        elif word == REFUSED:
            content = json.loads(body)
            self.problem = UsageError(content["text"], guide=content["guide"] and Guide(content["guide"]))
            self._why = f"cannot be started again: {self.problem}"
        else:
            self._unheard.discard(int(number))
            error = None if word == RESULT else _error(word, json.loads(body))
            is_crowded = word == OUT_OF_MEMORY and len(self.waiting) > 1  # which call took the memory is not known
            if not is_crowded and (future := self.waiting.pop(int(number), None)) and not future.done():
                self.answered += 1
                future.set_exception(error) if error else future.set_result(body)
            if word == OUT_OF_MEMORY:
                self.kill("ran out of memory, and was killed")

    async def call(self, payload: bytes) -> bytes:
        """What the function returned, as JSON.

        Raises:
            InvalidResponseError: it returned what cannot be sent.
            RaisedElsewhereError: it raised.
            ProcessEndedError: the process ended meanwhile.
        """
        number = next(self._numbers)
        self.waiting[number] = future = asyncio.get_running_loop().create_future()
        self._send(b"%d %b" % (number, payload))
        try:
            result: bytes = await future
        except asyncio.CancelledError:
            self._cancel(number)
            raise
        finally:
            self.waiting.pop(number, None)
        return result

    def _send(self, line: bytes) -> None:
        self._transport.get_pipe_transport(0).write(line + b"\n")

    def _cancel(self, number: int) -> None:
        """Have the function's own call cancelled; a process that does not even hear of it is killed."""
        self.cancelled += 1
        self._unheard.add(number)
        self._send(b"%d" % number)
        self._kill_later(UNHEARD_SECONDS, lambda: number in self._unheard, "was held up, and was killed")
        if self.cancelled >= MOST_CANCELLED:
            self.kill(f"had {MOST_CANCELLED} calls that were late, and was killed")

    @property
    def is_ready(self) -> bool:
        """Whether it can be called."""
        return self.facts is not None and not self.over.is_set() and not self._why

    @property
    def ending(self) -> str:
        """How it ended."""
        return self._why or ending(self._transport.get_returncode() or 0)

    def kill(self, why: str = "") -> None:
        """End it now, with the processes of its group, and say in its errors why."""
        if self._transport.get_returncode() is None:
            self._why = self._why or why
            kill_group(self._transport.get_pid())

    def _kill_later(self, seconds: float, if_still: Callable[[], bool], why: str) -> None:
        asyncio.get_running_loop().call_later(seconds, lambda: self.kill(why) if if_still() else None)

    async def end(self) -> None:
        """Have it write what it must and end by itself, and kill it where it does not."""
        self._send(GOODBYE)
        seconds = 0.0 if self.facts is None else END_SECONDS if self.cancelled else FINISH_SECONDS
        self._kill_later(seconds, lambda: True, "")
        await self.over.wait()


def _error(word: bytes, content: dict[str, Any]) -> Exception:
    """The error of a call; it raises one itself where the function wrote the line."""
    trace = TracePlace.model_validate(content["trace"]) if content["trace"] else None
    if word == INVALID:
        return InvalidResponseError(str(content["text"]), trace)
    usage = Usage.model_validate(content["usage"]) if content["usage"] else None
    return RaisedElsewhereError(str(content["text"]), usage, content["traceback"], trace)


@cache
def _loop(_pid: int) -> asyncio.AbstractEventLoop:
    """The loop that speaks to the processes of this one, in a daemon thread; a fork has no thread of its parent."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True, name="evaltrack-processes").start()
    return loop


class Pool(Closable):
    """`workers` processes that serve one function, started and ready; `facts` is what they tell of it.

    A call goes to the process with the least to do. Where one ends, another takes its place, and the calls in it are
    made again one after the other in a process kept for that, so that one that ends it a second time harms no other.

    Raises:
        UsageError: the function cannot be imported, or a process ends at once.
    """

    def __init__(self, order: Order, what: str, workers: int = 1) -> None:
        self._order, self._what, self._workers = order, what, workers
        self._processes: list[Process] = []
        self._lone: list[Process] = []
        self._lone_task: asyncio.Task[Any] | None = None
        """The one whose calls are made alone in a process."""
        self._starting = asyncio.Lock()
        self._endings: Counter[str] = Counter()
        self._in_vain = 0
        starting = asyncio.run_coroutine_threadsafe(self._start(), _loop(os.getpid()))
        try:
            starting.result()
        except BaseException as error:
            starting.cancel()
            self.close()
            if isinstance(error, OSError):
                raise UsageError(f"{what}: its process cannot be started: {error.strerror}") from None
            raise
        self.facts = self._processes[0].facts or {}

    async def _start(self) -> None:
        while len(self._processes) < self._workers:  # all at once: importing may take long
            await self._add(self._processes)
        for process in self._processes:
            while process.facts is None and not process.over.is_set():  # noqa: ASYNC110 - of two things
                await asyncio.sleep(LOOK_SECONDS)
            if process.facts is None:
                why = f"{self._what}: its process {process.ending}; see what it wrote above"
                raise process.problem or UsageError(why)

    async def _add(self, processes: list[Process]) -> None:
        """Start a process, which can be called a little later."""
        command = (sys.executable, "-P", "-c", BOOTSTRAP)
        made = asyncio.get_running_loop().subprocess_exec(lambda: Process(self._order), *command, **own_group())
        processes.append((await made)[1])

    @property
    def notes(self) -> list[str]:
        """How often processes ended, and how."""
        if not (times := self._endings.total()):
            return []
        how = ", ".join(f"{ending} ({count:,}x)" for ending, count in self._endings.most_common(3))
        return [f"the process of {self._what} ended {times:,} time{'' if times == 1 else 's'}: {how}"]

    async def call(self, call: Record) -> bytes:
        """What the function returns for a call, as JSON; raises as `Process.call` does."""
        payload = call.model_dump_json(exclude_defaults=True).encode()
        return await self._in_loop(self._call(payload, is_alone=self._is_alone))

    async def _call(self, payload: bytes, *, is_alone: bool) -> bytes:
        process = await self._process(is_alone=is_alone)
        try:
            return await process.call(payload)
        except ProcessEndedError as error:
            if is_alone:
                raise ProcessEndedError(f"{error} (asked twice, the second time alone)") from None
            raise InterruptedCallError(str(error), self) from None

    async def ready(self) -> None:
        """Wait until a process can be called, or none will be."""
        with suppress(ProcessEndedError, OSError):
            await self._in_loop(self._process(is_alone=self._is_alone))

    @property
    def _is_alone(self) -> bool:
        return self._lone_task is asyncio.current_task()

    async def _in_loop(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, _loop(os.getpid())))

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Have one process make the calls of this task, and no other calls meanwhile."""
        while self._lone_task is not None:  # noqa: ASYNC110 - a lock of asyncio belongs to one loop
            await asyncio.sleep(LOOK_SECONDS)
        self._lone_task = asyncio.current_task()
        try:
            yield
        finally:
            self._lone_task = None

    async def _process(self, *, is_alone: bool) -> Process:
        """The process with the least to do, in place of those that ended."""
        processes, number = (self._lone, 1) if is_alone else (self._processes, self._workers)
        while True:
            for process in [each for each in processes if each.over.is_set()]:
                processes.remove(process)
                self._endings[process.ending] += 1
                self._in_vain = 0 if process.answered else self._in_vain + 1
            async with self._starting:
                while len(processes) < number and self._in_vain < MOST_IN_VAIN:
                    await self._add(processes)
            if not processes:
                last = next(reversed(self._endings))
                raise ProcessEndedError(f"its process {last}, {MOST_IN_VAIN} times in a row without an answer")
            if ready := [each for each in processes if each.is_ready]:
                return min(ready, key=lambda each: len(each.waiting))
            await asyncio.sleep(LOOK_SECONDS)

    async def aclose(self) -> None:
        """Let all processes end, and kill those that do not."""
        processes = [*self._processes, *self._lone]
        self._endings.update(each.ending for each in processes if each.over.is_set())
        await asyncio.gather(*(self._in_loop(each.end()) for each in processes))

    def close(self) -> None:
        """Kill the processes."""
        for process in (*self._processes, *self._lone):
            process.kill("was held up, or not needed any more, and was killed")
