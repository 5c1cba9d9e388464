"""Starts, calls and serves the processes of a user's function, so that it cannot end or block an evaluation.

A process makes many calls at a time, which the process pools of the standard library do not: one is enough for a
function that waits for servers. In the parent, threads write to each process, read its answers and wait for its end.
Each process runs `main`, and ends when the parent ends.

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
import time
from codecs import getincrementaldecoder
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pkgutil import resolve_name
from queue import SimpleQueue
from subprocess import PIPE, Popen, TimeoutExpired
from traceback import clear_frames
from typing import Any, BinaryIO, TypeVar
from weakref import WeakValueDictionary

from evaltrack.errors import EvaltrackError, Guide, UsageError
from evaltrack.records import Question, Response
from evaltrack.records.base import Record
from evaltrack.records.response import TraceHome
from evaltrack.records.roles import Closable
from evaltrack.system.processes import end_own_group, kill_group, limit_own_memory, own_group
from evaltrack.targets.failures import ErrorFacts, ending, facts_of
from evaltrack.targets.threads import aside, loop_in_thread
from evaltrack.tracking.question_spans import expect_many_spans

T = TypeVar("T")
MAX_WORKERS = 256

BOOTSTRAP = (
    "import json, sys; order = json.loads(sys.stdin.buffer.readline()); sys.path[:] = order.pop('path'); "
    "sys.argv = ['evaltrack']; from evaltrack.targets.worker_pool import main; main(order)"
)
"""Start code of a process; it searches the same folders for modules as the parent does."""

UNHEARD_SECONDS = 5.0
"""Seconds without an answer to a cancelled call, after which its blocked process is killed."""

FINISH_SECONDS = 60.0
"""Seconds in which a process must write its traces and end."""

DRAIN_SECONDS = 1.0
"""Seconds that a process and its answers may outlive each other."""

LOOK_SECONDS = 0.02

TO_TERMINALS = re.compile(r"\x1b\[[\d;]*m|[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
"""Matches colours and other control characters of a terminal."""

PRINTED_BYTES = 1 << 16

MOST_IN_VAIN = 20
"""Number of processes that may end in a row without an answer; then none is started."""

READY, REFUSED = b"ready", b"refused"
"""The words of a process's reports about itself, which are answers to call 0."""

RESULT, FAILED = b"result", b"failed"

GOODBYE = b"goodbye"
"""The line after which a process ends by itself. If the lines end without it, the parent is gone."""

THREAD_SECONDS = 5.0
"""Seconds that threads of the function may outlive its calls."""


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


class Process:
    """One process and the calls that wait for it."""

    def __init__(self, order: Mapping[str, Any]) -> None:
        self.facts: dict[str, Any] | None = None
        """The facts that the process reported about its function; None until it can be called."""
        self.problem: UsageError | None = None
        self.waiting: dict[int, Future[bytes]] = {}
        self.has_answered = self.is_over = False
        self._why = ""
        self._unheard: set[int] = set()
        self._numbers = itertools.count(1)
        self._lines = SimpleQueue[bytes | None]()
        command = (sys.executable, "-P", "-c", BOOTSTRAP)
        self._process = Popen(command, stdin=PIPE, stdout=PIPE, stderr=PIPE, **own_group())  # noqa: S603
        self._lines.put(json.dumps({**order, "path": sys.path}).encode())
        self._reader, self._printer = _thread(self._read), _thread(self._print)
        self._watcher = _thread(self._watch)
        _thread(self._write)

    def _write(self) -> None:
        with suppress(OSError), self._process.stdin as lines:  # type: ignore[union-attr]
            for line in iter(self._lines.get, None):
                lines.write(line + b"\n")
                lines.flush()

    def _read(self) -> None:
        """Take answers; kill a process that sends other data, or closes its output and cannot answer any more."""
        with suppress(ValueError, TypeError), self._process.stdout as answers:  # type: ignore[union-attr]
            for line in answers:
                self._take(*line.rstrip(b"\n").split(b" ", 2))
        with suppress(TimeoutExpired):
            self._process.wait(DRAIN_SECONDS)
        self.kill("sent invalid data or closed its pipe, and was killed")

    def _print(self) -> None:
        """Write the function's prints to this process's stderr, which hides commands of CI services."""
        decoder = getincrementaldecoder("utf-8")("replace")
        with self._process.stderr as prints:  # type: ignore[union-attr]
            for data in iter(lambda: prints.read1(PRINTED_BYTES), b""):  # type: ignore[union-attr]
                with suppress(OSError, ValueError):  # stderr may be closed
                    sys.stderr.write(TO_TERMINALS.sub("", decoder.decode(data)))
                    sys.stderr.flush()

    def _watch(self) -> None:
        """Wait for the end, kill the rest of the group, which may hold pipes open, and fail the waiting calls."""
        self._process.wait()
        kill_group(self._process.pid)
        self._reader.join(DRAIN_SECONDS)
        self._printer.join(DRAIN_SECONDS)
        self.is_over = True
        self._lines.put(None)
        while self.waiting:
            self.waiting.popitem()[1].set_exception(ProcessEndedError(f"its process {self.ending}"))

    def _take(self, number: bytes, word: bytes, body: bytes) -> None:
        if word == READY:
            self.facts = json.loads(body)
        elif word == REFUSED:
            content = json.loads(body)
            self.problem = UsageError(content["text"], guide=content["guide"] and Guide(content["guide"]))
        else:
            self._unheard.discard(int(number))
            failed = ErrorFacts.model_validate_json(body) if word == FAILED else None
            is_out_of_memory = failed is not None and failed.kind == "memory"
            is_crowded = is_out_of_memory and len(self.waiting) > 1  # any of the calls may have taken the memory
            future = None if is_crowded else self.waiting.pop(int(number), None)
            if is_out_of_memory:  # killed before the answer is seen, else the next call could go to this process
                self.kill("ran out of memory, and was killed")
            if future:
                self.has_answered = True
                future.set_exception(failed.as_error()) if failed else future.set_result(body)

    async def call(self, payload: bytes) -> bytes:
        """Return the function's result as JSON.

        Raises:
            InvalidResponseError: it returned a value that cannot be sent.
            RaisedElsewhereError: it raised.
            ProcessEndedError: the process ended meanwhile.
        """
        number, future = next(self._numbers), Future[bytes]()
        future.set_running_or_notify_cancel()  # cancelling the wait for it does not cancel it
        self.waiting[number] = future
        self._lines.put(b"%d %b" % (number, payload))
        try:
            if self.is_over:
                raise ProcessEndedError(f"its process {self.ending}")
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            self._cancel(number)
            raise
        finally:
            self.waiting.pop(number, None)

    def _cancel(self, number: int) -> None:
        """Cancel the function's call; kill a process that does not respond to it."""
        self._unheard.add(number)
        self._lines.put(b"%d" % number)

        def kill_if_unheard() -> None:
            time.sleep(UNHEARD_SECONDS)
            if number in self._unheard:
                self.kill("did not react, and was killed")

        _thread(kill_if_unheard)

    @property
    def is_ready(self) -> bool:
        """True if the process can be called."""
        return self.facts is not None and not self.is_over and not self._why

    @property
    def ending(self) -> str:
        """The way the process ended."""
        return self._why or ending(self._process.returncode)

    def kill(self, why: str) -> None:
        """End the process and its group now; `why` is shown in its errors. No further call is made in it."""
        if self._process.poll() is None:
            self._why = self._why or why
            kill_group(self._process.pid)

    async def end(self) -> None:
        """Let the process finish its writes and end; kill it if it does not."""
        self._lines.put(GOODBYE)
        await aside(self._watcher.join, FINISH_SECONDS if self.facts else 0.0)
        self.kill("did not end in time, and was killed")
        await aside(self._watcher.join)


def _thread(function: Callable[[], None]) -> threading.Thread:
    """Return a daemon thread that runs a function."""
    thread = threading.Thread(target=function, daemon=True, name="evaltrack-process")
    thread.start()
    return thread


class Pool(Closable):
    """`workers` processes that serve one function and are ready; `facts` are their reports about it.

    The function is `place`, which `opener` makes answer calls; both are written ``package.module:name``. Errors call
    it `what`. `memory` is the limit of each process in bytes. `store` is the MLflow store of the run if its environment
    does not name it.

    A call goes to the process with the fewest waiting calls. If a process ends, another is started, and its calls are
    repeated one after the other in a process reserved for that, so that a call that ends it again harms no other.

    Raises:
        UsageError: the function cannot be imported, or a process ends at once.
    """

    def __init__(
        self,
        opener: str,
        place: str,
        what: str,
        *,
        workers: int = 1,
        memory: int | None = None,
        store: str | None = None,
    ) -> None:
        self._order = {"opener": opener, "place": place, "memory": memory, "store": store}
        self._what, self._workers = what, workers
        self._lone: list[Process] = []
        self._lone_task: asyncio.Task[Any] | None = None
        """The task whose calls are made alone in a process."""
        self._one_by_one = asyncio.Lock()
        self._endings: Counter[str] = Counter()
        self._in_vain = 0
        self._processes = [Process(self._order) for _ in range(workers)]  # all at once: imports may be slow
        try:
            for process in self._processes:
                while process.facts is None and not process.is_over:
                    time.sleep(LOOK_SECONDS)
                if process.facts is None:
                    why = f"{what}: its process {process.ending}; see what it wrote above"
                    raise process.problem or UsageError(why)
        except BaseException:
            self.close()
            raise
        self.facts = self._processes[0].facts or {}

    @property
    def files(self) -> Mapping[str, str]:
        """The project's files that its processes had imported when they started and when they ended."""
        reports = [self.facts, *(process.facts or {} for process in self._processes)]
        return {name: digest for facts in reversed(reports) for name, digest in facts.get("files", {}).items()}

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
        process = await self._ready_process()
        try:
            return await process.call(payload)
        except ProcessEndedError as error:
            if self._is_alone:
                raise ProcessEndedError(f"{error} (called twice, the second time alone)") from None
            raise InterruptedCallError(str(error), self) from None

    async def ready(self) -> None:
        """Wait until a process can be called, or no more are started."""
        with suppress(ProcessEndedError):
            await self._ready_process()

    @property
    def _is_alone(self) -> bool:
        return self._lone_task is asyncio.current_task()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Reserve one process for the calls of this task."""
        async with self._one_by_one:
            self._lone_task = asyncio.current_task()
            try:
                yield
            finally:
                self._lone_task = None

    async def _ready_process(self) -> Process:
        """Return the process with the fewest waiting calls, after replacing those that ended."""
        processes, number = (self._lone, 1) if self._is_alone else (self._processes, self._workers)
        while True:
            for process in [each for each in processes if each.is_over]:
                processes.remove(process)
                self._endings[process.ending] += 1
                self._in_vain = 0 if process.has_answered else self._in_vain + 1
            while len(processes) < number and self._in_vain < MOST_IN_VAIN:
                processes.append(Process(self._order))
            if not processes:
                last = next(reversed(self._endings))
                raise ProcessEndedError(f"its process {last}, {MOST_IN_VAIN} times in a row without an answer")
            if ready := [each for each in processes if each.is_ready]:
                return min(ready, key=lambda each: len(each.waiting))
            await asyncio.sleep(LOOK_SECONDS)

    async def aclose(self) -> None:
        """End all processes, and kill those that do not end."""
        processes = [*self._processes, *self._lone]
        self._endings.update(each.ending for each in processes if each.is_over)
        await asyncio.gather(*(each.end() for each in processes))

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
    """Serve the function that a `Pool` ordered."""
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
        end_own_group()

    def send(self, number: bytes, word: bytes, body: bytes) -> None:
        self._answers.write(b"%b %b %b\n" % (number, word, body))
        self._answers.flush()

    async def _serve(self, service: Service, number: bytes, payload: bytes) -> None:
        try:
            result = await service.answer(Call.model_validate_json(payload))
            word, content = RESULT, result.model_dump_json(exclude_defaults=True).encode()
        except BaseException as error:  # noqa: BLE001 - also SystemExit: a call that fails ends nothing but itself
            if isinstance(error, MemoryError):
                clear_frames(error.__traceback__)  # else the frames that filled the memory leave none for the answer
            word, content = FAILED, facts_of(error).model_dump_json().encode()
        self.send(number, word, content)

    async def _end(self, service: Service) -> None:
        self.send(b"0", READY, json.dumps(service.facts()).encode())
        if service.finish:
            await service.finish()
