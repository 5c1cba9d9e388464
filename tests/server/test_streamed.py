"""Pages whose head is sent before they are made."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from flask import Flask, abort

from evaltrack.errors import TrackingError
from evaltrack.server import streamed as module
from evaltrack.server.bounds import AsgiGuard
from evaltrack.server.shell import explained, shell, shell_head
from evaltrack.server.streamed import Pending, streamed

HTML = {"Accept": "text/html,*/*"}
PENDING = Pending(shell_head("t"), (("MLflow", "../"), ("evaltrack", "./"), ("<b>", "")), "about <b>")


def client(make: Callable[[], str]) -> Any:
    app = Flask(__name__)
    app.add_url_rule("/page", "page", lambda: streamed(PENDING, make))
    app.register_error_handler(Exception, explained)
    return app.test_client()


@pytest.fixture
def go(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when the page may be made; no page waits long for it."""
    monkeypatch.setattr(module, "HEAD_SECONDS", 0.01)
    return threading.Event()


def test_the_head_comes_first_and_the_rest_as_it_is_made(go: threading.Event) -> None:
    """Together they are the page behind what was shown until it came; foreign text is escaped in both."""

    def make() -> str:
        go.wait(10)
        return shell("later", "<main>made</main>")

    answer = client(make).get("/page", headers=HTML, buffered=False)
    parts = answer.iter_encoded()
    head = next(parts).decode()
    assert '<p class="foreign"><b>about &lt;b&gt;</b></p>' in head
    assert "made" not in head.partition("<body>")[2]
    go.set()
    rest = b"".join(parts).decode()
    assert rest.strip().startswith("<main>made</main>")
    assert (head + rest).count("<body>") == (head + rest).count("</html>") == 1
    assert (answer.status_code, answer.headers["X-Accel-Buffering"]) == (200, "no")


def test_what_fails_later_is_said_on_the_page(go: threading.Event) -> None:
    """In words, without a traceback; what fails at once has its status."""

    def fail() -> str:
        go.wait(0.2)
        raise TrackingError("the rows are <gone>")

    text = client(fail).get("/page", headers=HTML).get_data(as_text=True)
    assert "the rows are &lt;gone&gt;" in text
    assert text.endswith("</html>\n")
    assert client(lambda: abort(404, "no run")).get("/page", headers=HTML).status_code == 404


def test_programs_get_the_whole_with_its_status(go: threading.Event) -> None:
    """Those that do not say that they read HTML, and those that ask for the headers alone."""

    def fail() -> str:
        go.wait(0.1)
        abort(404, "no run")

    assert client(fail).get("/page").status_code == 404
    assert client(fail).head("/page", headers=HTML).status_code == 404


def test_the_guard_passes_parts_on_as_they_come() -> None:
    async def play() -> None:
        first_came, sent = asyncio.Event(), []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"head", "more_body": True})
            await asyncio.wait_for(first_came.wait(), 5)
            await send({"type": "http.response.body", "body": b"rest"})

        async def send(message: Any) -> None:
            sent.append(message.get("body"))
            if message.get("body") == b"head":
                first_came.set()

        scope = {"type": "http", "method": "GET", "path": "/evaltrack/drift", "headers": []}
        await AsgiGuard(app, "/evaltrack")(scope, asyncio.Event().wait, send)
        assert sent == [None, b"head", b"rest"]

    asyncio.run(play())


@pytest.mark.parametrize("length", [[(b"content-length", b"4")], []], ids=["whole", "streamed"])
def test_whoever_has_a_page_finds_its_place_free(length: list[tuple[bytes, bytes]]) -> None:
    """The next page that a reader asks for is never refused because of the one before."""
    free: list[bool] = []

    async def app(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": length})
        await send({"type": "http.response.body", "body": b"page", "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        await asyncio.sleep(0.05)

    guard = AsgiGuard(app, "/evaltrack")
    received = 0

    async def read(message: Any) -> None:
        nonlocal received
        received += len(message.get("body", b""))
        if (received == 4 and length) or message.get("more_body") is False:
            leave = guard._bound.enter("/evaltrack/golden")
            free.append(leave is not None)
            if leave:
                leave()

    scope = {"type": "http", "path": "/evaltrack/golden", "method": "GET", "headers": []}
    asyncio.run(guard(scope, None, read))  # type: ignore[arg-type]
    assert free
    assert all(free)
