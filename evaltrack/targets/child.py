"""The inside of a process that runs a user's function: it answers calls, and ends with the process that started it.

Both sides write lines. A call is its number and JSON; a number alone cancels that call. An answer is the number of its
call, one of the words below and JSON. The standard input and output carry them: the function reads nothing from its
input, and what it prints goes to the error output.
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
from importlib import import_module
from traceback import clear_frames
from typing import Any, BinaryIO
from weakref import WeakValueDictionary

from evaltrack.errors import EvaltrackError
from evaltrack.system.processes import end_own_group, limit_own_memory
from evaltrack.targets.failures import READ_LIMIT, InvalidResponseError, described, trace_of, traceback_of, usage_of
from evaltrack.targets.threads import loop_in_thread
from evaltrack.tracking.question_spans import expect_many_spans

READY, REFUSED = b"ready", b"refused"
"""The words of what a process says of itself, as answers to call 0."""

RESULT, INVALID, RAISED, OUT_OF_MEMORY = b"result", b"invalid", b"raised", b"memory"
"""The words of answers to calls."""

GOODBYE = b"goodbye"
"""The line after which a process ends by itself. Where the lines end without it, the parent is gone."""

THREAD_SECONDS = 5.0
"""How long threads that the function started may outlive its calls."""

MOST_BYTES = 128 << 20
"""Bytes of a result: a response of the greatest length of which every character is escaped still fits."""


@dataclass(frozen=True)
class Service:
    """What a process does for its parent: `answer` turns the JSON of a call into that of its result.

    `facts` are told to the parent at the start and at the end. `finish` is awaited at the end.
    """

    answer: Callable[[bytes], Awaitable[bytes]]
    facts: Callable[[], Mapping[str, Any]] = dict
    finish: Callable[[], Awaitable[None]] | None = None


def main(order: dict[str, Any]) -> None:
    """Serve the function of an `evaltrack.targets.processes.Order`."""
    calls, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    with open(os.devnull, "rb") as nothing:  # noqa: PTH123 - a device
        os.dup2(nothing.fileno(), 0)
    os.dup2(2, 1)
    faulthandler.enable()
    server = _Server(answers)
    try:
        service = _open(**order)
    except EvaltrackError as error:
        server.send(b"0", REFUSED, {"text": str(error), "guide": error.guide})
        return
    server.run(service, calls)
    timer = threading.Timer(THREAD_SECONDS, end_own_group)  # a thread of the function may go on for ever
    timer.daemon = True
    timer.start()


def _open(opener: str, place: str, memory: int | None, store: str | None) -> Service:
    if memory:
        limit_own_memory(memory)
    expect_many_spans()
    if store:
        os.environ["MLFLOW_TRACKING_URI"] = store
    module, _, name = opener.partition(":")
    service: Service = getattr(import_module(module), name)(place)
    return service


class _Server:
    """Answers each call in a task of its own, in an event loop beside the thread that takes the lines."""

    def __init__(self, answers: BinaryIO) -> None:
        self._answers = answers

    def run(self, service: Service, calls: BinaryIO) -> None:
        """Answer calls until goodbye is said; whatever else ends the lines ends the process."""
        loop, running = loop_in_thread(self), WeakValueDictionary[bytes, Future[None]]()
        self.send(b"0", READY, service.facts())
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

    def send(self, number: bytes, word: bytes, content: bytes | Mapping[str, Any]) -> None:
        """Write an answer."""
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self._answers.write(b"%b %b %b\n" % (number, word, body))
        self._answers.flush()

    async def _serve(self, service: Service, number: bytes, payload: bytes) -> None:
        content: bytes | dict[str, Any]
        try:
            word, content = RESULT, await service.answer(payload)
            if len(content) > MOST_BYTES:
                raise InvalidResponseError(f"is {len(content):,} bytes long; return at most {MOST_BYTES:,}")
        except InvalidResponseError as error:
            word, content = INVALID, _description(error) | {"text": str(error)[:READ_LIMIT]}
        except MemoryError as error:
            clear_frames(error.__traceback__)  # else what filled the memory leaves none for the answer
            word, content = OUT_OF_MEMORY, _description(error)
        except BaseException as error:  # noqa: BLE001 - also SystemExit: a call that fails ends nothing but itself
            word, content = RAISED, _description(error)
        self.send(number, word, content)

    async def _end(self, service: Service) -> None:
        self.send(b"0", READY, service.facts())
        if service.finish:
            await service.finish()


def _description(error: BaseException) -> dict[str, Any]:
    """The type and text of an error, the usage that it names, its traceback, and the trace it was raised in."""
    usage, trace = usage_of(error), trace_of(error)
    return {
        "text": described(error),
        "usage": usage and usage.model_dump(exclude_none=True),
        "traceback": traceback_of(error),
        "trace": trace and trace.model_dump(),
    }
