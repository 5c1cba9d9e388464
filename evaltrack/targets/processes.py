"""A user's function in processes of its own, so that nothing it does can end, alter or hold up an evaluation.

`evaltrack.targets.child` runs inside of them. The process pools of the standard library do not fit: a process of theirs
makes one call at a time and imports the user's script again, and where one ends all calls fail.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import sys
import threading
from codecs import getincrementaldecoder
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, TypeVar, cast

from evaltrack.errors import Guide, UsageError
from evaltrack.records import Usage
from evaltrack.records.base import Record
from evaltrack.records.roles import Closable
from evaltrack.records.trace_place import TracePlace
from evaltrack.system.processes import kill_group, own_group
from evaltrack.targets.child import FINISHED, GOODBYE, INVALID, OUT_OF_MEMORY, READY, REFUSED, RESULT
from evaltrack.targets.failures import RaisedElsewhereError, ending
from evaltrack.targets.response_fields import InvalidResponseError

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
"""How long a process may take to write its last traces, and to end after that."""

DRAIN_SECONDS = 1.0
"""How long a process and its output may outlive each other."""

LOOK_SECONDS = 0.02
"""Between two looks whether a process can be called."""

MOST_CANCELLED = 64
"""Cancelled calls after which a process is killed: threads that hang stay in it for ever."""

MOST_IN_VAIN = 20
"""Processes in a row that ended without an answer; after them none is started."""

LAST_WORDS = 500
"""Characters shown of the end of what a process wrote."""


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


@cache
def _loop() -> asyncio.AbstractEventLoop:
    """The event loop of all processes, in a thread of its own: callers come from other loops, or from none."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True, name="evaltrack-processes").start()
    return loop


async def _in_loop(work: Coroutine[Any, Any, T]) -> T:
    return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, _loop()))


class Process(asyncio.SubprocessProtocol):
    """One process and the calls that wait for it. Its output is passed on to this program's stderr."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.waiting: dict[int, asyncio.Future[bytes]] = {}
        self.facts: dict[str, Any] | None = None
        """What the process told of its function; None before it can be called."""
        self.problem: UsageError | None = None
        self.answered = self.cancelled = 0
        self.is_reserved = False
        """Whether it makes one call alone."""
        self.opened, self.over, self._finished = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._unheard: dict[int, asyncio.TimerHandle] = {}
        self._numbers = itertools.count(1)
        self._parts: list[bytes] = []
        self._decode = getincrementaldecoder("utf-8")("replace").decode
        self._tail, self.why = "", ""

    @classmethod
    async def start(cls, order: Order) -> Process:
        """A process that imports the function; `facts` or `over` are there once it has.

        Raises:
            OSError: it cannot be started.
        """
        command = [sys.executable, "-P", "-c", BOOTSTRAP]
        _, process = await _loop().subprocess_exec(cls, *command, **own_group())  # all three streams are pipes
        process.send(json.dumps({**asdict(order), "path": sys.path}).encode())
        _loop().call_later(START_SECONDS, process.kill_unready)
        return process

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The process was started."""
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self._calls = cast("asyncio.WriteTransport", self._transport.get_pipe_transport(0))

    def send(self, line: bytes) -> None:
        """Write a line to the process, from any thread."""
        _loop().call_soon_threadsafe(self._calls.write, line + b"\n")

    async def call(self, payload: bytes) -> bytes:
        """What the function returned, as JSON.

        Raises:
            InvalidResponseError: it returned what cannot be sent.
            RaisedElsewhereError: it raised.
            ProcessEndedError: the process ended meanwhile.
        """
        number = next(self._numbers)
        future: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        with self._lock:
            if self.over.is_set():
                raise ProcessEndedError(f"its process {self.ending}")
            self.waiting[number] = future
        self.send(b"%d %b" % (number, payload))
        try:
            return await future
        except asyncio.CancelledError:
            _loop().call_soon_threadsafe(self._cancel, number)
            raise
        finally:
            self.waiting.pop(number, None)

    def _cancel(self, number: int) -> None:
        """Have the function's own call cancelled; a process that does not even hear of it is killed."""
        self.cancelled += 1
        self.send(b"%d" % number)
        self._unheard[number] = _loop().call_later(UNHEARD_SECONDS, self.kill, "was held up, and was killed")
        if self.cancelled >= MOST_CANCELLED:
            self.kill(f"had {MOST_CANCELLED} calls that were late, and was killed")

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Take what the process writes: whole lines of answers, or output of the function."""
        if fd == 2:
            self._pass_on(self._decode(data))
            return
        self._parts.append(data)
        if b"\n" not in data:
            return
        *lines, rest = b"".join(self._parts).split(b"\n")
        self._parts = [rest]
        try:
            for line in lines:
                self._take(*line.split(b" ", 2))
        except (ValueError, KeyError, TypeError, RecursionError):
            self.kill("sent what is no answer, and was killed")

    def _take(self, number: bytes, word: bytes, body: bytes) -> None:
        if word == READY:
            self.facts = json.loads(body)
            self.opened.set()
        elif word == REFUSED:
            content = json.loads(body)
            self.problem = UsageError(content["text"], guide=next((g for g in Guide if g == content["guide"]), None))
        elif word == FINISHED:
            self._finished.set()
        else:
            self._settle(int(number), word, body)

    def _settle(self, number: int, word: bytes, body: bytes) -> None:
        outcome = _outcome(word, body)
        if timer := self._unheard.pop(number, None):
            timer.cancel()
        is_crowded = word == OUT_OF_MEMORY and len(self.waiting) > 1  # who took the memory is not known
        future = None if is_crowded else self.waiting.pop(number, None)
        if future:
            self.answered += 1
            _give(future, outcome)
        if word == OUT_OF_MEMORY:
            self.kill("ran out of memory, and was killed")

    def _pass_on(self, text: str) -> None:
        self._tail = (self._tail + text)[-LAST_WORDS:]
        with suppress(Exception):  # the reader may be gone
            sys.stderr.write(text)
            sys.stderr.flush()

    def pipe_connection_lost(self, fd: int, _error: Exception | None) -> None:
        """A process that closed its answers is of no use."""
        if fd == 1:
            _loop().call_later(DRAIN_SECONDS, self.kill, "closed its pipe, and was killed")

    def process_exited(self) -> None:
        """End what the process left behind, and read what is left of its output."""
        self.kill()
        _loop().call_later(DRAIN_SECONDS, self.connection_lost, None)

    def connection_lost(self, _error: Exception | None) -> None:
        """All was read; nothing more comes."""
        with self._lock:
            self.over.set()
        self._finished.set()
        self.opened.set()
        self._transport.close()
        for timer in self._unheard.values():
            timer.cancel()
        for number in list(self.waiting):
            if future := self.waiting.pop(number, None):
                _give(future, ProcessEndedError(f"its process {self.ending}"))

    @property
    def is_lost(self) -> bool:
        """Whether it ended, or was killed and is about to."""
        return bool(self.why) or self.over.is_set()

    @property
    def is_free(self) -> bool:
        """Whether it can be called by all."""
        return self.facts is not None and not self.is_reserved and not self.is_lost

    @property
    def ending(self) -> str:
        """How it ended, with the end of what it wrote where it gave an exit code: a signal leaves no words."""
        code = self._transport.get_returncode() or 0
        words = " ".join(self._tail.split()) if code > 0 else ""
        if self.problem:
            return f"cannot be started again: {self.problem}"
        return self.why or ending(code) + (f"; its output ends with `{words}`" if words else "")

    def kill(self, why: str = "") -> None:
        """End it now, with the processes of its group, and say in its errors why."""
        if not self.over.is_set():
            self.why = self.why or why
            kill_group(self._transport.get_pid())

    def kill_unready(self) -> None:
        """End it where the function is not imported yet."""
        if self.facts is None:
            self.kill(f"was not ready within {START_SECONDS:g} s")

    async def end(self) -> None:
        """Have it write what it must and end by itself, and kill it where it does not."""
        self.kill_unready()
        self.send(GOODBYE)
        for event, seconds in (
            (self._finished, END_SECONDS if self._unheard else FINISH_SECONDS),
            (self.over, END_SECONDS),
        ):
            with suppress(TimeoutError):
                await asyncio.wait_for(event.wait(), seconds)
        self.kill()
        await self.over.wait()


def _give(future: asyncio.Future[bytes], outcome: bytes | Exception) -> None:
    """Give a call its outcome, in the loop of its caller."""
    with suppress(RuntimeError):  # that was closed meanwhile
        future.get_loop().call_soon_threadsafe(_settle, future, outcome)


def _settle(future: asyncio.Future[bytes], outcome: bytes | Exception) -> None:
    if future.done():  # it was cancelled meanwhile
        return
    if isinstance(outcome, bytes):
        future.set_result(outcome)
    else:
        future.set_exception(outcome)


def _outcome(word: bytes, body: bytes) -> bytes | Exception:
    """What came of a call.

    Raises:
        ValueError, KeyError, TypeError: the function itself wrote the line.
    """
    if word == RESULT:
        return body
    content = json.loads(body)
    trace = TracePlace.model_validate(content["trace"]) if content["trace"] else None
    if word == INVALID:
        return InvalidResponseError(str(content["text"]), trace)
    usage = Usage.model_validate(content["usage"]) if content["usage"] else None
    return RaisedElsewhereError(str(content["text"]), usage, content["traceback"], trace)


_own_process: ContextVar[Process | None] = ContextVar("_own_process", default=None)
"""The process that makes the calls of this context, and no other."""


class Pool:
    """`workers` processes that serve one function, started and ready; `facts` is what they tell of it.

    A call goes to the process with the least to do. Where one ends, another takes its place, and the calls in it are
    made again, each alone in a process, so that the one that ends it a second time harms no other.

    Raises:
        UsageError: the function cannot be imported, or a process ends at once.
    """

    def __init__(self, order: Order, what: str, workers: int = 1) -> None:
        self._order, self._what, self._workers = order, what, workers
        self._processes: list[Process] = []
        self._starting = asyncio.Lock()
        self._endings: Counter[str] = Counter()
        self._in_vain = 0
        try:
            asyncio.run_coroutine_threadsafe(self._open(), _loop()).result()
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise UsageError(f"{what}: its process cannot be started: {error.strerror}") from None
            raise
        self.facts = self._processes[0].facts or {}

    async def _open(self) -> None:
        for _ in range(self._workers):  # all at once: importing may take long
            self._processes.append(await Process.start(self._order))
        for process in self._processes:
            await process.opened.wait()
            if process.facts is None:
                why = f"{self._what}: its process {process.ending}; see what it wrote above"
                raise process.problem or UsageError(why)

    @property
    def notes(self) -> list[str]:
        """How often processes ended, and how."""
        times = sum(self._endings.values())
        if not times:
            return []
        how = ", ".join(f"{ending} ({count:,}x)" for ending, count in self._endings.most_common(3))
        return [f"the process of {self._what} ended {times:,} time{'' if times == 1 else 's'}: {how}"]

    async def call(self, payload: bytes) -> bytes:
        """What the function returns for a call, both as JSON; raises as `Process.call` does."""
        process = await self._process()
        try:
            return await process.call(payload)
        except ProcessEndedError as error:
            if process is _own_process.get():
                raise ProcessEndedError(f"{error} (asked twice, the second time alone)") from None
            raise InterruptedCallError(str(error), self) from None

    async def ready(self) -> None:
        """Wait until a process can be called, or none will be."""
        with suppress(ProcessEndedError, OSError):
            await self._process()

    async def _process(self) -> Process:
        """The process of this context, or the one with the least to do."""
        if process := _own_process.get():
            return process
        if len(self._processes) == self._workers and all(each.is_free for each in self._processes):
            return min(self._processes, key=lambda each: len(each.waiting))
        return await _in_loop(self._least_busy())

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Have one process make the calls of this context, and no other calls meanwhile."""
        process = None
        with suppress(ProcessEndedError, OSError):  # the call says it
            process = await _in_loop(self._reserved())
        token = _own_process.set(process)
        try:
            yield
        finally:
            _own_process.reset(token)
            if process:
                process.is_reserved = False

    async def _reserved(self) -> Process:
        while True:
            process = await self._least_busy()
            process.is_reserved = True
            try:
                while process.waiting:  # noqa: ASYNC110 - each of them has a deadline of its own
                    await asyncio.sleep(LOOK_SECONDS)
            except BaseException:
                process.is_reserved = False
                raise
            if not process.is_lost:
                return process

    async def _least_busy(self) -> Process:
        while True:
            await self._replace()
            if free := [each for each in self._processes if each.is_free]:
                return min(free, key=lambda each: len(each.waiting))
            await asyncio.sleep(LOOK_SECONDS)

    async def _replace(self) -> None:
        """Count the processes that ended, and start as many others."""
        for process in [each for each in self._processes if each.over.is_set()]:
            self._processes.remove(process)
            self._endings[process.ending] += 1
            self._in_vain = 0 if process.answered else self._in_vain + 1
        async with self._starting:
            while len(self._processes) < self._workers and self._in_vain < MOST_IN_VAIN:
                self._processes.append(await Process.start(self._order))
        if not self._processes:
            last = next(reversed(self._endings))
            raise ProcessEndedError(f"its process {last}, {MOST_IN_VAIN} times in a row without an answer")

    async def aclose(self) -> None:
        """Let all processes end, and kill those that do not."""
        await _in_loop(self._aclose())

    async def _aclose(self) -> None:
        for process in self._processes:
            if process.is_lost:
                self._endings[process.ending] += 1
        await asyncio.gather(*(each.end() for each in self._processes if not each.over.is_set()))

    def close(self) -> None:
        """Kill the processes."""
        for process in self._processes:
            process.kill()


class InProcesses(Closable):
    """Owns the processes of a function, and closes them."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def _call(self, call: Record) -> bytes:
        return await self._pool.call(call.model_dump_json(exclude_defaults=True).encode())

    @property
    def notes(self) -> list[str]:
        """How often a process ended."""
        return self._pool.notes

    async def ready(self) -> None:
        """Wait for a process: what starting one takes is no part of an answer."""
        await self._pool.ready()

    async def aclose(self) -> None:
        """Let the processes end."""
        await self._pool.aclose()

    def close(self) -> None:
        """End processes that were never called."""
        self._pool.close()
