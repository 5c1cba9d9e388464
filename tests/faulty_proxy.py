"""A proxy in front of an MLflow server that loses, cuts, delays, doubles and makes up replies."""

from __future__ import annotations

import asyncio
import re
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any

FAULTS = (
    "503",  # refused; the server sees nothing of it
    "dropped",  # the connection ends; the server sees nothing of it
    "lost",  # the server does it, and no reply comes
    "cut",  # the server does it, and half of its reply comes
    "doubled",  # the server does it twice
    "delayed",  # by `DELAY`
    "empty",  # 200 and `{}`, and nothing is done
    "login",  # 200 and a web page, and nothing is done
)
DELAY = 1.0
"""Seconds."""

PAGE = b"<!DOCTYPE html>\n<html><body><form action='/login'>Sign in</form></body></html>"

Choice = Callable[[str], str | None]
"""From a request's method and path, such as `POST /api/2.0/mlflow/runs/create`, to its fault."""


class Chance:
    """Faults of some kinds at a rate, never more than two in a row."""

    def __init__(self, faults: tuple[str, ...], rate: float, seed: int) -> None:
        self._faults, self._rate = faults, rate
        self._chance = Random(seed)
        self._requests = self._in_a_row = 0
        self.counts = Counter[str]()

    def __call__(self, _request: str) -> str | None:
        """The fault of a request; the first question asked of a store has one retry only."""
        self._requests += 1
        rate = 0 if self._in_a_row >= 2 or self._requests <= 2 else self._rate if not self._in_a_row else 0.2
        if self._chance.random() >= rate:
            self._in_a_row = 0
            return None
        self._in_a_row += 1
        fault = self._chance.choice(self._faults)
        self.counts[fault] += 1
        return fault


class FaultyProxy:
    """Passes HTTP on to one port, one request a connection."""

    def __init__(self, upstream: int, choose: Choice) -> None:
        self._upstream, self._choose = upstream, choose
        self._tasks = set[asyncio.Task[Any] | None]()  # asyncio itself would let go of them half-way

    async def serve(self, ready: Callable[[int], object]) -> None:
        server = await asyncio.start_server(self._one, "127.0.0.1", 0, limit=1 << 20)
        ready(server.sockets[0].getsockname()[1])
        async with server:
            await server.serve_forever()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._tasks.add(task := asyncio.current_task())
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            request = head + await _body(reader, head)
            fault = self._choose(" ".join(head.decode("latin-1").split(" ", 2)[:2]))
            if not await self._answer(fault, request, writer):
                writer.transport.abort()
        except (OSError, asyncio.IncompleteReadError):
            writer.transport.abort()
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, fault: str | None, request: bytes, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection is ended as HTTP ends it."""
        made = {"503": ("503 Service Unavailable", b""), "empty": ("200 OK", b"{}"), "login": ("200 OK", PAGE)}
        if fault in made:
            status, text = made[fault]
            kind = "text/html" if fault == "login" else "application/json"
            head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(text)}\r\nConnection: close\r\n"
            writer.write(head.encode() + b"\r\n" + text)
        elif fault != "dropped":
            if fault == "delayed":
                await asyncio.sleep(DELAY)
            reply = await self._ask(request)
            if fault == "doubled":
                reply = await self._ask(request)
            if fault != "lost":
                writer.write(_half(reply) if fault == "cut" else reply)
        await writer.drain()
        return fault not in ("dropped", "lost", "cut")

    async def _ask(self, request: bytes) -> bytes:
        above, below = await asyncio.open_connection("127.0.0.1", self._upstream)
        first, _, rest = request.partition(b"\r\n")
        head, end, body = rest.partition(b"\r\n\r\n")
        lines = [line for line in head.split(b"\r\n") if not line.lower().startswith(b"connection:")]
        below.write(b"\r\n".join([first, b"Connection: close", *lines]) + end + body)
        try:
            await below.drain()
            return await above.read()
        finally:
            below.close()


def _half(reply: bytes) -> bytes:
    head, end, body = reply.partition(b"\r\n\r\n")
    return head + end + body[: len(body) // 2] if body else head[: len(head) // 2]


async def _body(reader: asyncio.StreamReader, head: bytes) -> bytes:
    length = re.search(rb"\r\ncontent-length: *(\d+)", head.lower())
    if length:
        return await reader.readexactly(int(length[1]))
    if b"\r\ntransfer-encoding: chunked" not in head.lower():
        return b""
    body = b""
    while not body.endswith(b"0\r\n\r\n"):
        body += await reader.readuntil(b"\r\n")
    return body


@dataclass
class Rules:
    """Faults for requests whose method and path match a pattern, each as often as it says; they may be changed."""

    rules: list[tuple[str, str | None, int]] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)

    def __call__(self, request: str) -> str | None:
        for pattern, fault, times in self.rules:
            if re.search(pattern, request) and self.counts[pattern] < times:
                self.counts[pattern] += 1
                return fault
        return None


@contextmanager
def proxy_thread(address: str, choose: Choice) -> Iterator[str]:
    """The proxy of a server, in a thread; its address."""
    loop, ports = asyncio.new_event_loop(), list[int]()
    ready = threading.Event()
    proxy = FaultyProxy(int(address.rpartition(":")[2]), choose)
    task = loop.create_task(proxy.serve(lambda port: (ports.append(port), ready.set())))

    def serve() -> None:
        try:
            loop.run_until_complete(task)
        except asyncio.CancelledError:
            pass
        finally:
            loop.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    ready.wait(10)
    try:
        yield f"http://127.0.0.1:{ports[0]}"
    finally:
        loop.call_soon_threadsafe(task.cancel)
        thread.join(10)
