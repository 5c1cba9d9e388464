"""Starts, calls and serves the processes of a user's function, so that it cannot end or block an evaluation.

A process makes many calls at a time, which the process pools of the standard library do not: one is enough for a
function that waits for servers. In the parent an event loop in a separate thread communicates with all processes
(`Pool`, `Process`). Each process runs `main`, and ends when the parent ends.

Both sides write lines. A call is its number and JSON; a number alone cancels that call. An answer is the number of its
call, one of the words below and JSON. The lines use standard input and output: the function can read nothing from its
input, and its prints go to standard error.
"""

from __future__ import annotations

import asyncio
import faulthandler
import itertools
import json
import os
import re
import sys
import threading
from codecs import getincrementaldecoder
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass
from functools import cache
from pkgutil import resolve_name
from traceback import clear_frames
from typing import Any, BinaryIO, TypeVar
from weakref import WeakValueDictionary

from evaltrack.errors import EvaltrackError, Guide, UsageError
from evaltrack.records import Question, Response
from evaltrack.records.base import Record
from evaltrack.records.response import TraceHome
from evaltrack.records.roles import Closable
from evaltrack.system.processes import end_own_group, kill_group, limit_own_memory, own_group
from evaltrack.targets.failures import ErrorFacts, InvalidResponseError, ending, facts_of
from evaltrack.targets.threads import loop_in_thread
from evaltrack.tracking.question_spans import expect_many_spans

T = TypeVar("T")
MAX_WORKERS = 256

BOOTSTRAP = (
    "import json, sys; order = json.loads(sys.stdin.buffer.readline()); sys.path[:] = order.pop('path'); "
    "sys.argv = ['evaltrack']; from evaltrack.targets.worker_pool import main; main(order)"
)
"""Start code of a process; it searches the same folders for modules as the parent does."""

START_SECONDS = 600.0
"""Seconds in which a process must import the function."""

UNHEARD_SECONDS = 5.0
"""Seconds without an answer to a cancelled call, after which its blocked process is killed."""

FINISH_SECONDS, END_SECONDS = 60.0, 5.0
"""Seconds in which a process must end; the second limit is for a process with late calls."""

DRAIN_SECONDS = 1.0
"""Seconds that a process and its answers may outlive each other."""

LOOK_SECONDS = 0.02
"""Seconds between two checks of a process's state."""

MOST_CANCELLED = 64
"""Cancelled calls after which a process is killed, as hanging threads remain in it."""

TO_TERMINALS = re.compile(r"\x1b\[[\d;]*m|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""Matches colours and other control characters of a terminal."""

MOST_IN_VAIN = 20
"""Number of processes that may end in a row without an answer; then none is started."""

READY, REFUSED = b"ready", b"refused"
"""The words of a process's reports about itself, which are answers to call 0."""

RESULT, FAILED = b"result", b"failed"
"""The words of answers to calls."""

GOODBYE = b"goodbye"
"""The line after which a process ends by itself. If the lines end without it, the parent is gone."""

THREAD_SECONDS = 5.0
"""Seconds that threads of the function may outlive its calls."""

MOST_BYTES = 128 << 20
"""Maximum bytes of a result: the longest response fits even if every character is escaped."""


@dataclass(frozen=True)
class Order:
    """The order for a process: serve the user's function `place`, which `opener` makes answer calls.

    Both are written ``package.module:name``. `memory` is in bytes. `store` is the MLflow store of the run if its
    environment does not name it.
    """

    place: str
    opener: str
    memory: int | None = None
    store: str | None = None


class ProcessEndedError(RuntimeError):
    """The process of a function ended before it answered."""


class InterruptedCallError(ProcessEndedError):
    """The process ended, maybe because of another call in it: `pool` can repeat this call alone in a process."""

    def __init__(self, text: str, pool: Pool) -> None:
        super().__init__(text)
        self.pool = pool


async def asked_twice(ask: Callable[[], Awaitable[T]]) -> T:
    """Return the result of `ask`; if the process of its function ended, ask again alone in a process."""
    try:
        return await ask()
    except InterruptedCallError as error:
        async with error.pool.alone():
            return await ask()


class Process(asyncio.SubprocessProtocol):
    """One process and the calls that wait for it. Only `kill` may be called from outside the loop of `_loop`."""

    def __init__(self, order: Order) -> None:
        self.facts: dict[str, Any] | None = None
        """The facts that the process reported about its function; None until it can be called."""
        self.problem: UsageError | None = None
        self.waiting: dict[int, asyncio.Future[bytes]] = {}
        self.answered = self.cancelled = 0
        self.over = asyncio.Event()
        self._order, self._why = order, ""
        self._unheard: set[int] = set()
        self._numbers = itertools.count(1)
        self._answers, self._printed = bytearray(), getincrementaldecoder("utf-8")("replace")

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the order."""
        self._transport: Any = transport
        self._send(json.dumps({**asdict(self._order), "path": sys.path}).encode())
        self._kill_later(START_SECONDS, lambda: self.facts is None, f"was not ready within {START_SECONDS:g} s")

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Read answers, and write the function's prints to stderr without terminal commands."""
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
            self.kill("sent invalid data, and was killed")

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002 - of the protocol
        """Kill a process that has closed its output and cannot answer any more."""
        if fd == 1:
            self._kill_later(DRAIN_SECONDS, lambda: True, "closed its pipe, and was killed")

    def process_exited(self) -> None:
        """Kill the rest of its group, which may hold its pipes open."""
        kill_group(self._transport.get_pid())
        asyncio.get_running_loop().call_later(DRAIN_SECONDS, self.connection_lost, None)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - of the protocol
        """Fail the waiting calls."""
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
            failed = ErrorFacts.model_validate_json(body) if word == FAILED else None
            is_out_of_memory = failed is not None and failed.kind == "memory"
            is_crowded = is_out_of_memory and len(self.waiting) > 1  # any of the calls may have taken the memory
            if not is_crowded and (future := self.waiting.pop(int(number), None)) and not future.done():
                self.answered += 1
                future.set_exception(failed.as_error()) if failed else future.set_result(body)
            if is_out_of_memory:
                self.kill("ran out of memory, and was killed")

    async def call(self, payload: bytes) -> bytes:
        """Return the function's result as JSON.

        Raises:
            InvalidResponseError: it returned a value that cannot be sent.
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
        """Cancel the function's call; kill a process that does not respond to it."""
        self.cancelled += 1
        self._unheard.add(number)
        self._send(b"%d" % number)
        self._kill_later(UNHEARD_SECONDS, lambda: number in self._unheard, "did not react, and was killed")
        if self.cancelled >= MOST_CANCELLED:
            self.kill(f"had {MOST_CANCELLED} calls that were late, and was killed")

    @property
    def is_ready(self) -> bool:
        """True if the process can be called."""
        return self.facts is not None and not self.over.is_set() and not self._why

    @property
    def ending(self) -> str:
        """The way the process ended."""
        return self._why or ending(self._transport.get_returncode() or 0)

    def kill(self, why: str = "") -> None:
        """End the process and its group now; `why` is shown in its errors."""
        if self._transport.get_returncode() is None:
            self._why = self._why or why
            kill_group(self._transport.get_pid())

    def _kill_later(self, seconds: float, if_still: Callable[[], bool], why: str) -> None:
        asyncio.get_running_loop().call_later(seconds, lambda: self.kill(why) if if_still() else None)

    async def end(self) -> None:
        """Let the process finish its writes and end; kill it if it does not."""
        self._send(GOODBYE)
        seconds = 0.0 if self.facts is None else END_SECONDS if self.cancelled else FINISH_SECONDS
        self._kill_later(seconds, lambda: True, "")
        await self.over.wait()


@cache
def _loop(_pid: int) -> asyncio.AbstractEventLoop:
    """Return the loop for this process's children, in a daemon thread; a fork does not inherit threads."""
    return loop_in_thread(_loop)


class Pool(Closable):
    """`workers` processes that serve one function and are ready; `facts` are their reports about it.

    A call goes to the process with the fewest waiting calls. If a process ends, another is started, and its calls are
    repeated one after the other in a process reserved for that, so that a call that ends it again harms no other.

    Raises:
        UsageError: the function cannot be imported, or a process ends at once.
    """

    def __init__(self, order: Order, what: str, workers: int = 1) -> None:
        self._order, self._what, self._workers = order, what, workers
        self._processes: list[Process] = []
        self._lone: list[Process] = []
        self._lone_task: asyncio.Task[Any] | None = None
        """The task whose calls are made alone in a process."""
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
        while len(self._processes) < self._workers:  # all at once: imports may be slow
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
        """The number of ended processes and the way they ended."""
        if not (times := self._endings.total()):
            return []
        how = ", ".join(f"{ending} ({count:,}x)" for ending, count in self._endings.most_common(3))
        return [f"the process of {self._what} ended {times:,} time{'' if times == 1 else 's'}: {how}"]

    async def call(self, call: Call) -> bytes:
        """Return the function's result for a call as JSON; raises as `Process.call` does."""
        payload = call.model_dump_json(exclude_defaults=True).encode()
        return await self._in_loop(self._call(payload, is_alone=self._is_alone))

    async def _call(self, payload: bytes, *, is_alone: bool) -> bytes:
        process = await self._process(is_alone=is_alone)
        try:
            return await process.call(payload)
        except ProcessEndedError as error:
            if is_alone:
                raise ProcessEndedError(f"{error} (called twice, the second time alone)") from None
            raise InterruptedCallError(str(error), self) from None

    async def ready(self) -> None:
        """Wait until a process can be called, or no more are started."""
        with suppress(ProcessEndedError, OSError):
            await self._in_loop(self._process(is_alone=self._is_alone))

    @property
    def _is_alone(self) -> bool:
        return self._lone_task is asyncio.current_task()

    async def _in_loop(self, work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, _loop(os.getpid())))

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Reserve one process for the calls of this task."""
        while self._lone_task is not None:  # noqa: ASYNC110 - an asyncio lock belongs to one loop
            await asyncio.sleep(LOOK_SECONDS)
        self._lone_task = asyncio.current_task()
        try:
            yield
        finally:
            self._lone_task = None

    async def _process(self, *, is_alone: bool) -> Process:
        """Return the process with the fewest waiting calls, after replacing those that ended."""
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
        """End all processes, and kill those that do not end."""
        processes = [*self._processes, *self._lone]
        self._endings.update(each.ending for each in processes if each.over.is_set())
        await asyncio.gather(*(self._in_loop(each.end()) for each in processes))

    def close(self) -> None:
        """Kill the processes."""
        for process in (*self._processes, *self._lone):
            process.kill("did not react or was no longer needed, and was killed")


class Call(Record):
    """A call of a target with `k`, whose traces belong to the run `home`, or of a judge or a score with a response."""

    question: Question
    response: Response = Response()
    k: int = 0
    home: TraceHome | None = None


@dataclass(frozen=True)
class Service:
    """The service of a process for its parent.

    `facts` are sent to the parent at the start and at the end. `finish` is awaited at the end.
    """

    answer: Callable[[Call], Awaitable[Record]]
    facts: Callable[[], Mapping[str, Any]] = dict
    finish: Callable[[], Awaitable[None]] | None = None


def main(order: dict[str, Any]) -> None:
    """Serve the function of an `evaltrack.targets.worker_pool.Order`."""
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - a device
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    faulthandler.enable()
    server = _Server(answers)
    try:
        service = _open(**order)
    except EvaltrackError as error:
        server.send(b"0", REFUSED, json.dumps({"text": str(error), "guide": error.guide}).encode())
        return
    server.run(service, calls)
    timer = threading.Timer(THREAD_SECONDS, end_own_group)  # a thread of the function may never end
    timer.daemon = True
    timer.start()


def _open(opener: str, place: str, memory: int | None, store: str | None) -> Service:
    if memory:
        limit_own_memory(memory)
    expect_many_spans()
    if store:
        os.environ["MLFLOW_TRACKING_URI"] = store
    service: Service = resolve_name(opener)(place)
    return service


class _Server:
    """Answers each call in a separate task, in an event loop next to the thread that reads the lines."""

    def __init__(self, answers: BinaryIO) -> None:
        self._answers = answers

    def run(self, service: Service, calls: BinaryIO) -> None:
        """Answer calls until `GOODBYE`; if the lines end in another way, end the process."""
        loop, running = loop_in_thread(self), WeakValueDictionary[bytes, Future[None]]()
        self.send(b"0", READY, json.dumps(service.facts()).encode())
        number = b""
        try:
            for line in calls:
                number, _, payload = line.rstrip(b"\n").partition(b" ")
                if number == GOODBYE:
                    asyncio.run_coroutine_threadsafe(self._end(service), loop).result()
                    return
                if payload:
                    work = self._serve(service, number, payload)
                    running[number] = asyncio.run_coroutine_threadsafe(work, loop)
                elif call := running.get(number):
                    call.cancel()
        finally:
            if number != GOODBYE:
                end_own_group()

    def send(self, number: bytes, word: bytes, body: bytes) -> None:
        self._answers.write(b"%b %b %b\n" % (number, word, body))
        self._answers.flush()

    async def _serve(self, service: Service, number: bytes, payload: bytes) -> None:
        try:
            result = await service.answer(Call.model_validate_json(payload))
            word, content = RESULT, result.model_dump_json(exclude_defaults=True).encode()
            if len(content) > MOST_BYTES:
                raise InvalidResponseError(f"is {len(content):,} bytes long; return at most {MOST_BYTES:,}")
        except BaseException as error:  # noqa: BLE001 - also SystemExit: a call that fails ends nothing but itself
            if isinstance(error, MemoryError):
                clear_frames(error.__traceback__)  # else the frames that filled the memory leave none for the answer
            word, content = FAILED, facts_of(error).model_dump_json().encode()
        self.send(number, word, content)

    async def _end(self, service: Service) -> None:
        self.send(b"0", READY, json.dumps(service.facts()).encode())
        if service.finish:
            await service.finish()
