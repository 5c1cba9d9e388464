"""A proxy in front of an MLflow server that loses, cuts, delays, doubles and makes up replies.

The server sees nothing of a request with the fault `503`, `empty`, `login` (a web page) or `dropped` (the connection
ends). It does what was asked where the reply is `lost` or `cut` in half, does it twice where it is `doubled`, and does
it late where it is `delayed`.
"""

from __future__ import annotations

import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

DELAY = 1.0
"""Seconds."""
PAGE = b"<!DOCTYPE html>\n<html><body><form action='/login'>Sign in</form></body></html>"
Reply = tuple[int, dict[str, str], bytes]
MADE_UP: dict[str | None, Reply] = {
    "503": (503, {}, b""),
    "empty": (200, {"Content-Type": "application/json"}, b"{}"),
    "login": (200, {"Content-Type": "text/html"}, PAGE),
}
Choice = Callable[[str], str | None]
"""From a request's method and path, such as `POST /api/2.0/mlflow/runs/create`, to its fault."""


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


class _Proxy(ThreadingHTTPServer):
    def __init__(self, upstream: int, choose: Choice) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.upstream, self.choose, self.lock = upstream, choose, threading.Lock()


class _Handler(BaseHTTPRequestHandler):
    server: _Proxy

    def do_POST(self) -> None:
        with suppress(OSError):  # the client or the server is gone
            self.pass_on()

    do_GET = do_PUT = do_PATCH = do_DELETE = do_POST  # noqa: N815 - the names that http.server looks for

    def pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        with self.server.lock:
            fault = self.server.choose(f"{self.command} {self.path}")
        if fault in MADE_UP:
            self.reply(*MADE_UP[fault])
        elif fault != "dropped":
            time.sleep(DELAY if fault == "delayed" else 0)
            made = [self.ask(body) for _ in range(2 if fault == "doubled" else 1)]
            if fault != "lost":
                self.reply(*made[-1], is_cut=fault == "cut")

    def ask(self, body: bytes) -> Reply:
        server = HTTPConnection("127.0.0.1", self.server.upstream)
        server.request(self.command, self.path, body or None, dict(self.headers))
        given = server.getresponse()
        text = given.read()
        server.close()
        kept = {k: v for k, v in given.getheaders() if k.lower() not in ("content-length", "transfer-encoding")}
        return given.status, kept, text

    def reply(self, status: int, headers: dict[str, str], text: bytes, *, is_cut: bool = False) -> None:
        if is_cut and not text:
            return
        self.send_response_only(status)
        for name, value in {**headers, "Content-Length": str(len(text)), "Connection": "close"}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text[: len(text) // 2] if is_cut else text)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def proxy_thread(address: str, choose: Choice) -> Iterator[str]:
    """The proxy of a server, which takes one request a connection, in a thread; its address."""
    with _Proxy(int(address.rpartition(":")[2]), choose) as proxy:
        thread = threading.Thread(target=proxy.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{proxy.server_port}"
        finally:
            proxy.shutdown()
            thread.join(10)
