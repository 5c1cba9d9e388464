"""An OpenAI-compatible server on loopback with a scripted behaviour: real sockets and HTTP, no model behind it.

    with OpenAIServer(faulty(answer_judge(), rate=0.2, kinds=["rate_limit_ms", "truncated"])) as server:
        client = AsyncOpenAI(base_url=server.base_url, api_key="any")

runs it in a thread. `with server_process("--latency", "0.2") as base_url` runs it in a process of its own, so that its
work is not done in the client's; that is `python tests/openai_server.py --latency 0.2`. It serves POST
/v1/chat/completions and /v1/embeddings, GET /v1/models and GET /v1/stats, and refuses ill-formed requests as OpenAI
does. HTTP is parsed by hand on an `asyncio.Protocol`, because benchmarks run against it: a call costs it a fraction of
a millisecond.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

if not __package__:  # run as a script
    sys.path.insert(0, str(Path(__file__).parent.parent))

from tests import openai_behaviours as ready
from tests.openai_behaviours import Behaviour, Reply, answer_judge, failure, invalid
from tests.openai_requests import Json, embedded, ill_formed

CHAT = "/v1/chat/completions"


@dataclass(frozen=True)
class Request:
    """What came in: `body` is the parsed JSON (None where there was none), `at` a monotonic time in seconds."""

    method: str
    path: str
    head: bytes
    body: Any
    at: float

    @cached_property
    def headers(self) -> dict[str, str]:
        lines = self.head.decode("latin-1").split("\r\n")[1:]
        return {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}


class OpenAIServer:
    """Serves a behaviour in a thread while its `with` block runs, on a free port unless one is given.

    With an `api_key` every request must carry it. A behaviour that raises gives a 500, and raises again at the end of
    the block. `most_in_flight` is how many requests were unanswered at most, `calls` how many reached the behaviour.
    """

    def __init__(
        self,
        behaviour: Behaviour | None = None,
        *,
        port: int = 0,
        api_key: str | None = None,
        models: tuple[str, ...] = ("gpt-4o-mini",),
    ) -> None:
        self.behaviour = behaviour or answer_judge()
        self.port, self.api_key, self.models = port, api_key, models
        self.calls = self.in_flight = self.most_in_flight = 0
        self.failures: list[Exception] = []
        self.connections: set[_Connection] = set()
        self._requests: list[Request] = []
        self._lock = threading.Lock()

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    @property
    def requests(self) -> list[Request]:
        with self._lock:
            return self._requests.copy()

    @property
    def bodies(self) -> list[Json]:
        return [request.body for request in self.requests if request.path == CHAT]

    def __enter__(self) -> Self:
        listener = socket.create_server(("127.0.0.1", self.port), backlog=1024)
        self.port = listener.getsockname()[1]
        self._loop = asyncio.new_event_loop()
        self._end = self._loop.create_future()
        self._thread = threading.Thread(target=self._run, args=(listener,), name="openai-server", daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._end.set_result, None)
        self._thread.join(10)
        if self.failures and kind is None:
            raise self.failures[0]

    def _run(self, listener: socket.socket) -> None:
        self._loop.run_until_complete(self._serve(listener))
        self._loop.close()

    async def _serve(self, listener: socket.socket) -> None:
        server = await self._loop.create_server(lambda: _Connection(self), sock=listener, backlog=1024)
        await self._end
        server.close()
        for connection in tuple(self.connections):
            connection.transport.abort()
        await asyncio.sleep(0)  # lets each of them close its socket

    def answer(self, request: Request) -> tuple[Reply, bytes]:
        """The reply to a request, which is recorded, and its body."""
        with self._lock:
            self._requests.append(request)
        call = self.calls
        try:
            reply = self._refusal(request) or self._other(request) or self._behave(request.body)
            model = request.body.get("model", "") if isinstance(request.body, dict) else ""
            return reply, reply.body(model, call)
        except Exception as error:  # noqa: BLE001 - raised again when the server ends
            self.failures.append(error)
            reply = failure(500, f"The behaviour failed: {error!r}", "server_error")
            return reply, reply.body("", call)

    def _refusal(self, request: Request) -> Reply | None:
        if self.api_key and request.headers.get("authorization") != f"Bearer {self.api_key}":
            return ready.unauthorised()({}, 0)
        wrong = ill_formed(request.body) if (request.method, request.path) == ("POST", CHAT) else None
        return invalid(*wrong) if wrong else None

    def _other(self, request: Request) -> Reply | None:
        """What is not a chat."""
        match request.method, request.path:
            case "POST", "/v1/chat/completions":
                return None
            case "GET", "/v1/models":
                models = [{"id": name, "object": "model", "created": 0, "owned_by": "tests"} for name in self.models]
                return Reply(raw=json.dumps({"object": "list", "data": models}))
            case "POST", "/v1/embeddings":
                return Reply(raw=json.dumps(embedded(request.body)))
            case "GET", "/v1/stats":
                return Reply(raw=json.dumps(self.stats()))
            case method, path:
                return failure(404, f"Invalid URL ({method} {path})", "invalid_request_error")

    def _behave(self, body: Json) -> Reply:
        call = self.calls
        self.calls += 1
        return self.behaviour(body, call)

    def stats(self) -> dict[str, float]:
        return {"calls": self.calls, "most_in_flight": self.most_in_flight, "cpu_seconds": time.process_time()}


class _Connection(asyncio.Protocol):
    """One client's connection, kept alive; requests on it are answered one after the other."""

    transport: asyncio.Transport

    def __init__(self, server: OpenAIServer) -> None:
        self.server = server
        self.buffer = b""
        self.busy = False
        self.timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.server.connections.add(self)

    def connection_lost(self, _error: Exception | None) -> None:
        self.server.connections.discard(self)
        if self.timer:
            self.timer.cancel()
        if self.busy:
            self.server.in_flight -= 1

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if not self.busy:
            self._next()

    def _next(self) -> None:
        """Answer the next request if all of it is there."""
        head, blank, rest = self.buffer.partition(b"\r\n\r\n")
        length = re.search(rb"\r\ncontent-length: *(\d+)", head, re.IGNORECASE)
        size = int(length[1]) if length else 0
        if not blank or len(rest) < size:
            return
        self.buffer = rest[size:]
        self.busy, server = True, self.server
        server.in_flight += 1
        server.most_in_flight = max(server.most_in_flight, server.in_flight)
        method, path, _ = head.split(b"\r\n", 1)[0].decode("latin-1").split(" ", 2)
        reply, body = server.answer(Request(method, path, head, _parsed(rest[:size]), time.monotonic()))
        if reply.latency > 0:
            self.timer = asyncio.get_running_loop().call_later(reply.latency, self._send, reply, body)
        else:
            self._send(reply, body)

    def _send(self, reply: Reply, body: bytes) -> None:
        self.busy, self.timer = False, None
        self.server.in_flight -= 1
        half = body[: len(body) // 2]
        if reply.wire == "truncated":
            body = half
        headers = {"content-type": "application/json", "content-length": str(len(body)), **reply.headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}\r\n{lines}\r\n".encode("latin-1")
        if reply.wire.startswith("closed"):
            self.transport.write(head + half if reply.wire == "closed_amid" else b"")
            self.transport.close()
        else:
            self.transport.write(head + body)
            if self.buffer:
                self._next()


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body) if body else None
    except ValueError:
        return None


@contextmanager
def server_process(*options: str) -> Iterator[str]:
    """The base URL of a server in a process of its own, started with the options of this file as a script."""
    command = [sys.executable, __file__, *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout
            base_url = process.stdout.readline().strip()
            assert base_url, f"the server did not start: {command}"
            yield base_url
        finally:
            process.terminate()


def main() -> None:
    """Serve until interrupted; the first line on stdout is the base URL."""
    parser = argparse.ArgumentParser(description="An OpenAI-compatible server that judges answers.")
    parser.add_argument("--latency", type=float, default=0.0, metavar="SECONDS")
    behaviour = ready.slow(answer_judge(), parser.parse_args().latency)
    signals = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    with OpenAIServer(behaviour) as server:
        print(server.base_url, flush=True)
        signal.sigwait(signals)


if __name__ == "__main__":
    main()
