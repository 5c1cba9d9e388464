"""A user's function in processes of its own, so that nothing it does can end, alter or hold up an evaluation.

`evaltrack.targets.child` runs inside of them. A process makes many calls at a time, which those of the standard
library's pools do not: one is enough for a function that waits for servers.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import queue
import re
import subprocess
import sys
import threading
import time
from codecs import getincrementaldecoder
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import asdict, dataclass
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


class Process:
    """One process and the calls that wait for it.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, order: Order) -> None:
        self.waiting: dict[int, asyncio.Future[bytes]] = {}
        self.facts: dict[str, Any] | None = None
        """What the process told of its function; None before it can be called."""
        self.problem: UsageError | None = None
        self.answered = self.cancelled = 0
        self.is_over = False
        self._why = ""
        self._unheard: set[int] = set()
        self._numbers, self._lock = itertools.count(1), threading.Lock()
        self._lines: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        self._lines.put(json.dumps({**asdict(order), "path": sys.path}).encode())
        command = [sys.executable, "-P", "-c", BOOTSTRAP]
        pipe = subprocess.PIPE
        self._popen = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, **own_group())  # noqa: S603 - this Python
        self._kill_later(START_SECONDS, lambda: self.facts is None, f"was not ready within {START_SECONDS:g} s")
        for work in (self._write, self._wait):
            threading.Thread(target=work, daemon=True, name="evaltrack-process").start()

    def _write(self) -> None:
        with suppress(OSError), self._popen.stdin as calls:  # type: ignore[union-attr]  # it may have ended
            while not self.is_over:
                calls.write(self._lines.get() + b"\n")
                calls.flush()

    def _read(self) -> None:
        try:
            with self._popen.stdout as answers:  # type: ignore[union-attr]
                while line := answers.readline(2 * MOST_BYTES):
                    self._take(*line.removesuffix(b"\n").split(b" ", 2))
        except (ValueError, KeyError, TypeError, RecursionError):
            self.kill("sent what is no answer, and was killed")
        self._kill_later(DRAIN_SECONDS, lambda: True, "closed its pipe, and was killed")

    def _pass_on(self) -> None:
        """Write what the function prints to this program's stderr, without commands to a terminal.

        Commands to CI runners are taken out there.
        """
        decoder = getincrementaldecoder("utf-8")("replace")
        with self._popen.stderr as printed:  # type: ignore[union-attr]
            while chunk := printed.read1():  # type: ignore[union-attr]  # it is buffered
                with suppress(OSError, ValueError):  # stderr may be closed, and the pipe must not fill up
                    sys.stderr.write(TO_TERMINALS.sub("", decoder.decode(chunk)))
                    sys.stderr.flush()

    def _wait(self) -> None:
        works = (self._read, self._pass_on)
        readers = [threading.Thread(target=work, daemon=True, name="evaltrack-answers") for work in works]
        for reader in readers:
            reader.start()
        self._popen.wait()
        kill_group(self._popen.pid)  # what it left behind
        for reader in readers:
            reader.join(DRAIN_SECONDS)
        with self._lock:
            self.is_over, calls, self.waiting = True, list(self.waiting.values()), {}
        self._lines.put(b"")
        for future in calls:
            _give(future, ProcessEndedError(f"its process {self.ending}"))

    def _take(self, number: bytes, word: bytes, body: bytes) -> None:
        if word == READY:
            self.facts = json.loads(body)
        elif word == REFUSED:
            content = json.loads(body)
            self.problem = UsageError(content["text"], guide=next((g for g in Guide if g == content["guide"]), None))
        else:
            self._unheard.discard(int(number))
            outcome = _outcome(word, body)
            is_crowded = word == OUT_OF_MEMORY and len(self.waiting) > 1  # which call took the memory is not known
            if not is_crowded and (future := self.waiting.pop(int(number), None)):
                self.answered += 1
                _give(future, outcome)
            if word == OUT_OF_MEMORY:
                self.kill("ran out of memory, and was killed")

    async def call(self, payload: bytes) -> bytes:
        """What the function returned, as JSON.

        Raises:
            InvalidResponseError: it returned what cannot be sent.
            RaisedElsewhereError: it raised.
            ProcessEndedError: the process ended meanwhile.
        """
        number, future = next(self._numbers), asyncio.get_running_loop().create_future()
        with self._lock:
            if self.is_over:
                raise ProcessEndedError(f"its process {self.ending}")
            self.waiting[number] = future
        self._lines.put(b"%d %b" % (number, payload))
        try:
            result: bytes = await future
        except asyncio.CancelledError:
            self._cancel(number)
            raise
        finally:
            self.waiting.pop(number, None)
        return result

    def _cancel(self, number: int) -> None:
        """Have the function's own call cancelled; a process that does not even hear of it is killed."""
        self.cancelled += 1
        self._unheard.add(number)
        self._lines.put(b"%d" % number)
        self._kill_later(UNHEARD_SECONDS, lambda: number in self._unheard, "was held up, and was killed")
        if self.cancelled >= MOST_CANCELLED:
            self.kill(f"had {MOST_CANCELLED} calls that were late, and was killed")

    @property
    def is_ready(self) -> bool:
        """Whether it can be called."""
        return self.facts is not None and not self.is_over and not self._why

    @property
    def ending(self) -> str:
        """How it ended."""
        if self.problem:
            return f"cannot be started again: {self.problem}"
        return self._why or ending(self._popen.returncode or 0)

    def kill(self, why: str = "") -> None:
        """End it now, with the processes of its group, and say in its errors why."""
        if self._popen.poll() is None:
            self._why = self._why or why
            kill_group(self._popen.pid)

    def _kill_later(self, seconds: float, if_still: Callable[[], bool], why: str) -> None:
        timer = threading.Timer(seconds, lambda: self.kill(why) if if_still() else None)
        timer.daemon = True
        timer.start()

    async def end(self) -> None:
        """Have it write what it must and end by itself, and kill it where it does not."""
        self._lines.put(GOODBYE)
        seconds = 0.0 if self.facts is None else END_SECONDS if self.cancelled else FINISH_SECONDS
        deadline = time.monotonic() + seconds
        while not self.is_over:
            if time.monotonic() >= deadline:
                self.kill()
            await asyncio.sleep(LOOK_SECONDS)


def _give(future: asyncio.Future[bytes], outcome: bytes | Exception) -> None:
    """Give a call its outcome, in the loop of its caller."""

    def settle() -> None:
        if not future.done():  # it may have been cancelled meanwhile
            future.set_result(outcome) if isinstance(outcome, bytes) else future.set_exception(outcome)

    with suppress(RuntimeError):  # the loop was closed meanwhile
        future.get_loop().call_soon_threadsafe(settle)


def _outcome(word: bytes, body: bytes) -> bytes | Exception:
    """The outcome of a call.

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


_lone_pool: ContextVar[Pool | None] = ContextVar("_lone_pool", default=None)
"""The pool whose calls in this context are made alone in a process."""


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
        self._is_lone_taken = False
        self._endings: Counter[str] = Counter()
        self._in_vain = 0
        try:
            self._processes += (Process(order) for _ in range(workers))  # all at once: importing may take long
            for process in self._processes:
                while process.facts is None and not process.is_over:
                    time.sleep(LOOK_SECONDS)
                if process.facts is None:
                    why = f"{what}: its process {process.ending}; see what it wrote above"
                    raise process.problem or UsageError(why)
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise UsageError(f"{what}: its process cannot be started: {error.strerror}") from None
            raise
        self.facts = self._processes[0].facts or {}

    @property
    def notes(self) -> list[str]:
        """How often processes ended, and how."""
        if not (times := self._endings.total()):
            return []
        how = ", ".join(f"{ending} ({count:,}x)" for ending, count in self._endings.most_common(3))
        return [f"the process of {self._what} ended {times:,} time{'' if times == 1 else 's'}: {how}"]

    async def call(self, call: Record) -> bytes:
        """What the function returns for a call, as JSON; raises as `Process.call` does."""
        process = await self._process()
        try:
            return await process.call(call.model_dump_json(exclude_defaults=True).encode())
        except ProcessEndedError as error:
            if _lone_pool.get() is self:
                raise ProcessEndedError(f"{error} (asked twice, the second time alone)") from None
            raise InterruptedCallError(str(error), self) from None

    async def ready(self) -> None:
        """Wait until a process can be called, or none will be."""
        with suppress(ProcessEndedError, OSError):
            await self._process()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Have one process make the calls of this context, and no other calls meanwhile."""
        while self._is_lone_taken:  # noqa: ASYNC110 - a lock of asyncio belongs to one loop
            await asyncio.sleep(LOOK_SECONDS)
        self._is_lone_taken, token = True, _lone_pool.set(self)
        try:
            yield
        finally:
            self._is_lone_taken = False
            _lone_pool.reset(token)

    async def _process(self) -> Process:
        """The process with the least to do, in place of those that ended."""
        is_alone = _lone_pool.get() is self
        processes, number = (self._lone, 1) if is_alone else (self._processes, self._workers)
        while True:
            for process in [each for each in processes if each.is_over]:
                processes.remove(process)
                self._endings[process.ending] += 1
                self._in_vain = 0 if process.answered else self._in_vain + 1
            while len(processes) < number and self._in_vain < MOST_IN_VAIN:
                processes.append(Process(self._order))
            if not processes:
                last = next(reversed(self._endings))
                raise ProcessEndedError(f"its process {last}, {MOST_IN_VAIN} times in a row without an answer")
            if ready := [each for each in processes if each.is_ready]:
                return min(ready, key=lambda each: len(each.waiting))
            await asyncio.sleep(LOOK_SECONDS)

    async def aclose(self) -> None:
        """Let all processes end, and kill those that do not."""
        processes = [*self._processes, *self._lone]
        self._endings.update(each.ending for each in processes if each.is_over)
        await asyncio.gather(*(each.end() for each in processes))

    def close(self) -> None:
        """Kill the processes."""
        for process in (*self._processes, *self._lone):
            process.kill("was held up, or not needed any more, and was killed")
