"""Calls over the socket of a child process, many at once, in one event loop."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import cast

from evaltrack.records import Usage
from evaltrack.records.trace_place import TracePlace
from evaltrack.targets.child.frames import (
    CALL,
    CANCEL,
    HEARD,
    INVALID,
    RESULT,
    BrokenFrameError,
    Frame,
    FrameReader,
    frame,
)
from evaltrack.targets.child.process import Process
from evaltrack.targets.failures import RaisedElsewhereError
from evaltrack.targets.response_fields import InvalidResponseError
from evaltrack.targets.threads import aside

UNHEARD_SECONDS = 5.0
"""How long a cancellation may take to reach a process that is held up, before it is killed."""

FORKED_SECONDS = 0.5
"""How long a process may outlive its end of the socket, and the socket the process, before both are done with."""


class ProcessEndedError(RuntimeError):
    """The process of a function ended before it had answered."""


class Calls(asyncio.Protocol):
    """The calls that wait for a process; all of them fail when it ends."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._loop = asyncio.get_running_loop()
        self._reader = FrameReader()
        self._numbers = itertools.count(1)
        self._reader.last = 0
        self._waiting: dict[int, asyncio.Future[bytes]] = {}
        self._unheard: dict[int, asyncio.TimerHandle] = {}
        self._why: str | None = None
        self._lost = self._dead = False
        self.answered = self.cancelled = 0
        """Calls that were answered, and that were given up before."""
        self.over = False
        """Whether nothing can be called any more."""

    @classmethod
    async def open(cls, process: Process) -> Calls:
        """The calls of a process that is ready."""
        calls = cls(process)
        await calls._loop.create_connection(lambda: calls, sock=process.socket)
        process.when_ended(partial(_in_loop, calls._loop, calls._process_ended))
        return calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """The socket is taken over."""
        self._transport = cast("asyncio.Transport", transport)

    def __len__(self) -> int:
        """How many calls wait."""
        return len(self._waiting)

    async def call(self, payload: bytes) -> bytes:
        """What the function returned, as JSON.

        Raises:
            InvalidResponseError: it returned what cannot be sent.
            RaisedElsewhereError: it raised.
            ProcessEndedError: the process ended meanwhile.
        """
        number = self._reader.last = next(self._numbers)
        future: asyncio.Future[bytes] = self._loop.create_future()
        self._waiting[number] = future
        try:
            self._write(frame(CALL, number, payload))
            return await future
        except asyncio.CancelledError:
            if not self.over:
                self._cancel(number)
            raise
        finally:
            self._waiting.pop(number, None)

    def _write(self, message: bytes) -> None:
        if not self._lost:  # else the end of the process is seen soon
            self._transport.write(message)

    def _cancel(self, number: int) -> None:
        """Have the function's own call cancelled; a process that does not even hear of it is killed."""
        self.cancelled += 1
        self._write(frame(CANCEL, number))
        self._unheard[number] = self._loop.call_later(UNHEARD_SECONDS, self.kill, "was held up, and was killed")

    def data_received(self, data: bytes) -> None:
        """Take the messages that are complete."""
        try:
            for message in self._reader.feed(data):
                self._take(message)
        except (BrokenFrameError, ValueError, KeyError, TypeError):
            self.kill("sent what is no answer, and was killed")

    def _take(self, message: Frame) -> None:
        if message.kind == HEARD:
            if timer := self._unheard.pop(message.number, None):
                timer.cancel()
            return
        future = self._waiting.get(message.number)
        if future is None or future.done():
            return
        self.answered += 1
        if message.kind == RESULT:
            future.set_result(message.payload)
            return
        error = json.loads(message.payload)
        trace = TracePlace.model_validate(error["trace"]) if error["trace"] else None
        if message.kind == INVALID:
            future.set_exception(InvalidResponseError(str(error["text"]), trace))
        else:
            usage = Usage.model_validate(error["usage"]) if error["usage"] else None
            future.set_exception(RaisedElsewhereError(error["text"], usage, error["traceback"], trace))

    @property
    def ending(self) -> str:
        """How its process ended."""
        return self._why or self._process.ending

    def kill(self, why: str) -> None:
        """End the process, and say in its errors why."""
        self._why = self._why or why
        self._process.kill()

    def connection_lost(self, _error: Exception | None) -> None:
        """The process closed the socket, or ended."""
        self._lost = True
        self._settle()

    def _process_ended(self) -> None:
        self._dead = True
        self._settle()

    def _settle(self) -> None:
        """Once socket and process are gone nothing more can come; one of them alone may outlive the other for a bit."""
        if self._lost and self._dead:
            self._fail()
        else:
            self._loop.call_later(FORKED_SECONDS, self._give_up)

    def _give_up(self) -> None:
        self._process.kill()
        if self._dead:
            self._fail()

    def _fail(self) -> None:
        self.over = True
        for timer in self._unheard.values():
            timer.cancel()
        self._transport.abort()
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(ProcessEndedError(f"its process {self.ending}"))

    async def close(self, seconds: float) -> None:
        """Let the process end by itself, for at most so many seconds, and then kill what is left."""
        self.over = True
        self._transport.close()
        await aside(self._process.end, seconds)


def _in_loop(loop: asyncio.AbstractEventLoop, callback: Callable[[], object]) -> None:
    with suppress(RuntimeError):  # it was closed meanwhile
        loop.call_soon_threadsafe(callback)
