"""Runs a user's function inside a child process: answers calls, and ends when the parent ends.

Both sides write lines. A call is its number and JSON; a number alone cancels that call. An answer is the number of its
call, one of the words below and JSON. The lines use standard input and output: the function can read nothing from its
input, and its prints go to standard error.
"""

from __future__ import annotations

import asyncio
import faulthandler
import json
import os
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from pkgutil import resolve_name
from traceback import clear_frames
from typing import Any, BinaryIO
from weakref import WeakValueDictionary

from evaltrack.errors import EvaltrackError
from evaltrack.records import Question, Response
from evaltrack.records.base import Record
from evaltrack.records.response import TraceHome
from evaltrack.system.processes import end_own_group, limit_own_memory
from evaltrack.targets.failures import InvalidResponseError, facts_of
from evaltrack.targets.threads import loop_in_thread
from evaltrack.tracking.question_spans import expect_many_spans

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
