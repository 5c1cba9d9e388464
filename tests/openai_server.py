"""An OpenAI-compatible server on loopback with a scripted behaviour: real sockets and HTTP, no model behind it.

    with OpenAIServer(slow(answer_judge(), 0.2)) as server:
        client = AsyncOpenAI(base_url=server.base_url, api_key="any")

serves POST /v1/chat/completions, and refuses ill-formed requests as OpenAI does.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests import openai_behaviours as ready
from tests.openai_behaviours import Behaviour, Reply, answer_judge, failure, invalid
from tests.openai_requests import Json, ill_formed

CHAT = "/v1/chat/completions"


@dataclass(frozen=True)
class Request:
    """`headers` have names in lower case, `body` is the parsed JSON or None, `at` a monotonic time in seconds."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: Any
    at: float


class OpenAIServer:
    """Serves a behaviour in a thread while its `with` block runs, on a free port.

    With an `api_key` every request must carry it. A behaviour that raises gives a 500, and raises again at the end of
    the block. `most_in_flight` is how many requests were unanswered at most, `calls` how many reached the behaviour.
    """

    def __init__(self, behaviour: Behaviour | None = None, *, api_key: str | None = None) -> None:
        self.behaviour = behaviour or answer_judge()
        self.port, self.api_key = 0, api_key
        self.calls = self.in_flight = self.most_in_flight = 0
        self.failures: list[Exception] = []
        self._requests: list[Request] = []
        self._lock = threading.RLock()  # behaviours look at `requests`

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
        self._http = _Http(("127.0.0.1", self.port), _Handler)
        self._http.openai, self.port = self, self._http.server_port
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        self._http.ended.set()
        self._http.shutdown()
        self._thread.join(10)
        self._http.server_close()
        if self.failures and kind is None:
            raise self.failures[0]

    def answer(self, request: Request) -> tuple[Reply, bytes]:
        """Record a request, and return its reply and the body. It is in flight until `sent`."""
        with self._lock:
            self._requests.append(request)
            self.in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self.in_flight)
            call = self.calls
            try:
                reply = self._reply(request)
                model = request.body.get("model", "") if isinstance(request.body, dict) else ""
                return reply, reply.body(model, call)
            except Exception as error:  # noqa: BLE001 - raised again when the server ends
                self.failures.append(error)
                reply = failure(500, f"The behaviour failed: {error!r}", "server_error")
                return reply, reply.body("", call)

    def sent(self) -> None:
        with self._lock:
            self.in_flight -= 1

    def _reply(self, request: Request) -> Reply:
        if self.api_key and request.headers.get("authorization") != f"Bearer {self.api_key}":
            return ready.unauthorised()({}, 0)
        if (request.method, request.path) != ("POST", CHAT):
            return failure(404, f"Invalid URL ({request.method} {request.path})", "invalid_request_error")
        if wrong := ill_formed(request.body):
            return invalid(wrong)
        self.calls += 1
        return self.behaviour(request.body, self.calls - 1)


class _Http(ThreadingHTTPServer):
    daemon_threads, block_on_close, request_queue_size = True, False, 1024
    openai: OpenAIServer

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.ended = threading.Event()

    def handle_error(self, *_: object) -> None:
        """A client that hung up is no news."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version, disable_nagle_algorithm = "HTTP/1.1", True
    server: _Http

    def do_POST(self) -> None:
        size = int(self.headers.get("content-length", 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = Request(self.command, self.path, headers, _parsed(self.rfile.read(size)), time.monotonic())
        reply, body = self.server.openai.answer(request)
        try:
            if reply.latency > 0 and self.server.ended.wait(reply.latency):
                self.close_connection = True
                return
        finally:
            self.server.openai.sent()
        self._send(reply, body)

    do_GET = do_POST  # noqa: N815 - the name that http.server looks for

    def _send(self, reply: Reply, body: bytes) -> None:
        half = body[: len(body) // 2]
        headers = {"content-type": "application/json", "content-length": str(len(body)), **reply.headers}
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        head = f"HTTP/1.1 {reply.status} {HTTPStatus(reply.status).phrase}\r\n{lines}\r\n".encode("latin-1")
        self.close_connection = self.close_connection or reply.wire.startswith("closed")
        if reply.wire != "closed_before":
            self.wfile.write(head + (half if reply.wire == "closed_amid" else body))

    def log_message(self, *_: object) -> None:
        pass


def _parsed(body: bytes) -> Any:
    try:
        return json.loads(body) if body else None
    except ValueError:
        return None
