"""Inside a child process: import a user's function, answer the calls that come over a socket, and end with the parent.

What the function does to this process stays here: it may end it, stop its event loop, cancel its tasks or patch the
standard library.
"""

from __future__ import annotations

import asyncio
import faulthandler
import json
import os
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from evaltrack.errors import EXIT_INTERRUPTED, EvaltrackError
from evaltrack.records.trace_place import TracePlace
from evaltrack.system.channel import connect_to_parent
from evaltrack.system.limits import limit_own_memory
from evaltrack.system.processes import end_own_group
from evaltrack.targets.child.frames import (
    CALL,
    CANCEL,
    HEARD,
    INVALID,
    MAX_FRAME,
    RAISED,
    READY,
    RESULT,
    BrokenFrameError,
    Frame,
    FrameReader,
    frame,
)
from evaltrack.targets.failures import READ_LIMIT, described, trace_of, traceback_of, usage_of
from evaltrack.targets.response_fields import InvalidResponseError
from evaltrack.tracking.question_spans import expect_many_spans

Answer = Callable[[bytes], Awaitable[bytes]]
"""From the JSON of a call to the JSON of its result."""


@dataclass(frozen=True)
class Service:
    """What a child process does for its parent: it answers calls, and tells `facts` of the function, as JSON."""

    answer: Answer
    facts: Mapping[str, Any] = field(default_factory=dict)


LAST_MOMENT, FAREWELL = 0.05, 5.0
"""Seconds after which a parent that closed its socket is alive, and in which the end of one that is gone is seen."""

PIECE = 1 << 18
"""Bytes read at once."""


def main(first: str, second: str) -> None:
    """Serve the calls that come over the socket to the parent, which the two words lead to, until it is closed."""
    parent_id = os.getppid()
    connection, lifeline = connect_to_parent(first, second)
    watch = threading.Thread(target=_end_with_parent, args=[lifeline], daemon=True, name="evaltrack-lifeline")
    watch.start()
    faulthandler.enable()
    with connection as parent:
        reader = FrameReader()
        order = json.loads(_first(parent, reader).payload)
        try:
            service = _open(order)
        except EvaltrackError as error:
            parent.sendall(frame(RAISED, 0, json.dumps({"text": str(error), "guide": error.guide}).encode()))
            return
        parent.sendall(frame(READY, 0, json.dumps(dict(service.facts)).encode()))
        try:
            _Server(parent, reader, service.answer).run()
        except KeyboardInterrupt:  # its process group is being stopped
            os._exit(EXIT_INTERRUPTED)
    watch.join(LAST_MOMENT)  # the socket of a parent that is gone may be closed a little before its lifeline
    if os.getppid() != parent_id:
        watch.join(FAREWELL)


def _end_with_parent(lifeline: int) -> None:
    """Wait for the end of the parent, also where the event loop is held up; what was started here ends, too."""
    while os.read(lifeline, 1):
        pass
    end_own_group()


def _first(parent: socket.socket, reader: FrameReader) -> Frame:
    while True:
        for each in reader.feed(parent.recv(PIECE) or sys.exit(0)):
            return each


def _open(order: dict[str, Any]) -> Service:
    """The function that the order names, behind the opener that it names, within the memory that it allows.

    MLflow's own settings lead it to the store that the order names.
    """
    if order["memory"]:
        limit_own_memory(order["memory"])
    expect_many_spans()
    if order["store"]:
        os.environ["MLFLOW_TRACKING_URI"] = order["store"]
    module, _, name = order["opener"].partition(":")
    service: Service = getattr(import_module(module), name)(order["place"])
    return service


class _Server:
    """Answers each call in a task of its own."""

    def __init__(self, parent: socket.socket, reader: FrameReader, answer: Answer) -> None:
        self._parent, self._reader, self._answer = parent, reader, answer
        self._loop = asyncio.new_event_loop()
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._closed = False

    def run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.add_reader(self._parent, self._readable)
        except NotImplementedError:  # the event loop of Windows
            threading.Thread(target=self._read_aside, daemon=True, name="evaltrack-calls").start()
        while not self._closed:  # the function may stop the loop
            self._loop.run_forever()

    def _readable(self) -> None:
        self._received(self._read())

    def _read_aside(self) -> None:
        """Read in a thread, for a loop that cannot wait for sockets."""
        while data := self._read():
            self._loop.call_soon_threadsafe(self._received, data)
        self._loop.call_soon_threadsafe(self._received, b"")

    def _read(self) -> bytes:
        try:
            return self._parent.recv(PIECE)
        except ConnectionError:
            return b""

    def _received(self, data: bytes) -> None:
        if not data:
            self._end()
            return
        try:
            for each in self._reader.feed(data):
                self._take(each)
        except BrokenFrameError:
            os._exit(1)

    def _take(self, message: Frame) -> None:
        if message.kind == CALL:
            self._tasks[message.number] = self._loop.create_task(self._serve(message.number, message.payload))
        elif message.kind == CANCEL:
            self._send(frame(HEARD, message.number))
            if task := self._tasks.get(message.number):
                task.cancel()

    async def _serve(self, number: int, payload: bytes) -> None:
        try:
            kind, result = RESULT, await self._answer(payload)
        except InvalidResponseError as error:
            kind, result = INVALID, _refused(str(error)[:READ_LIMIT], trace_of(error))
        except BaseException as error:  # noqa: BLE001 - also SystemExit: a call that fails ends nothing but itself
            kind, result = RAISED, _described(error)
        finally:
            self._tasks.pop(number, None)
        if len(result) > MAX_FRAME:
            kind, result = INVALID, _refused(f"is {len(result):,} bytes long; return at most {MAX_FRAME:,}")
        self._send(frame(kind, number, result))

    def _send(self, message: bytes) -> None:
        try:
            self._parent.sendall(message)
        except ConnectionError:  # the caller is gone
            self._end()

    def _end(self) -> None:
        self._closed = True
        self._loop.stop()


def _refused(text: str, trace: TracePlace | None = None) -> bytes:
    """Why what was returned is no response, as JSON, and the trace that was made meanwhile."""
    return json.dumps({"text": text, "trace": trace and trace.model_dump()}).encode()


def _described(error: BaseException) -> bytes:
    """An error as JSON: its type and text, the usage that it names, its traceback, and the trace it was raised in."""
    usage, trace = usage_of(error), trace_of(error)
    fields = {
        "text": described(error),
        "usage": usage and usage.model_dump(exclude_none=True),
        "traceback": traceback_of(error),
        "trace": trace and trace.model_dump(),
    }
    return json.dumps(fields).encode()
