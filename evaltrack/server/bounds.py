"""How many of our pages are made at a time; a request beyond that gets 503 with `Retry-After`.

The guard stands before MLflow's application and looks at our paths alone, so that a refusal holds no thread and costs
MLflow's own API next to nothing. It also sets our headers on what MLflow answers under our path.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from contextlib import suppress
from typing import Any

from evaltrack.server.shell import shell

HEAVY, LIGHT = 2, 1
"""Pages made from the rows of runs, and other pages, that one server process makes at a time: the latter in its own
threads, where several would only share the time of one."""

WAITING, PATIENCE = 32, 20.0
"""Requests for other pages that wait, and seconds each does, where waiting holds no thread."""

RETRY_SECONDS = 5

RECEIVING, SENDING = 10.0, 60.0
"""Seconds that a form has to come, and an answer to be read."""

BODY_LIMIT = 128 * 1024
"""Bytes of a form; `pages` refuses one of half of it with a word."""

REFUSED_AT_ONCE = 20
"""Refusals within `RETRY_SECONDS` that are answered at once; each that comes above that is answered later, which keeps
readers that ask again at once from taking the server's time, and holds no thread."""

POLICY = "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'self'"
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cache-Control": "no-store",
}

Scope = MutableMapping[str, Any]
Asgi = Callable[[Scope, Callable[[], Awaitable[Any]], Callable[[Any], Awaitable[None]]], Awaitable[None]]
Wsgi = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
Refusal = tuple[str, dict[str, str], bytes]


class Bound:
    """Counts the pages being made, of each of two kinds."""

    def __init__(self, prefix: str) -> None:
        self._prefix = prefix
        self._free = {True: HEAVY, False: LIGHT}
        self._lock = threading.Lock()

    def covers(self, path: str) -> bool:
        """Whether a path is ours."""
        return path == self._prefix or path.startswith(self._prefix + "/")

    def heavy(self, path: str) -> bool:
        """Whether a page is made from the rows of runs."""
        return path.removeprefix(self._prefix).strip("/") in ("drift", "run", "matrix", "question", "accept")

    def enter(self, path: str) -> Callable[[], None] | None:
        """Begin a page, and give back what ends it; None where as many are being made as may be."""
        heavy = self.heavy(path)
        with self._lock:
            if not self._free[heavy]:
                return None
            self._free[heavy] -= 1

        def leave() -> None:
            with self._lock:
                self._free[heavy] += 1

        return leave


def refusal(site: str | None) -> Refusal | None:
    """What a request is answered that another site's page made, which could be made a thousand times."""
    if site != "cross-site":
        return None
    question = "Another site led here. Open it again from this page, so that no foreign page can ask in your name:"
    body = f'<p>{question} <a href="">open</a></p>'
    return "403 Forbidden", {}, _page("Opened from another site", body)


def busy() -> Refusal:
    """What a request is answered that comes while as many pages are made as may be; its page comes again by itself."""
    body = f"<p>The server is making other pages. This one is asked for again in {RETRY_SECONDS} seconds.</p>"
    retry = {"Retry-After": str(RETRY_SECONDS), "Refresh": str(RETRY_SECONDS)}
    return "503 Service Unavailable", retry, _page("The server is busy", body)


def too_slow() -> Refusal:
    """What a form is answered that does not come in time, or is longer than any of ours."""
    return (
        "408 Request Timeout",
        {},
        _page("The form did not come", "<p>Open the page again and send it once more.</p>"),
    )


def _page(heading: str, body: str) -> bytes:
    card = f'<div class="wrap"><main><section class="card verdict warn"><h1>{heading}</h1>{body}</section></main></div>'
    return shell(f"{heading} · evaltrack", card).encode()


class AsgiGuard:
    """The guard before an ASGI application."""

    def __init__(self, app: Asgi, prefix: str) -> None:
        self._app, self._bound = app, Bound(prefix)
        self._freed, self._waiting = asyncio.Condition(), 0
        self._refusals: deque[float] = deque(maxlen=REFUSED_AT_ONCE)
        self._tasks: set[asyncio.Future[None]] = set()

    async def __call__(self, scope: Scope, receive: Callable[[], Any], send: Callable[[Any], Awaitable[None]]) -> None:
        """Pass on what is not ours; refuse or count what is."""
        if scope["type"] != "http" or not self._bound.covers(scope["path"]):
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        problem = refusal(headers.get("sec-fetch-site"))
        body = b"" if problem or scope["method"] in ("GET", "HEAD") else await _body(receive)
        leave = None if problem or body is None else await self._enter(scope["path"])
        if leave is None:
            await self._slow_down()
            with suppress(TimeoutError):
                async with asyncio.timeout(SENDING):
                    await _answer(send, problem or (busy() if body is not None else too_slow()))
            return
        answer: asyncio.Queue[Any] = asyncio.Queue()
        held: list[Any] = []
        start = time.monotonic()
        reader = asyncio.ensure_future(_sent(answer, send))
        try:
            await self._app(scope, _received(body or b""), _with_headers(_early(answer, held)))
        except BaseException:
            reader.cancel()
            raise
        finally:
            await self._rest(leave, time.monotonic() - start)
        for message in (*held, None):
            answer.put_nowait(message)
        with suppress(TimeoutError):  # a reader that is slow to read holds no place, and no connection for ever
            await asyncio.wait_for(reader, SENDING)

    async def _rest(self, leave: Callable[[], None], seconds: float) -> None:
        """Free a place: at once, or where many ask after thrice the time it was held, which is MLflow's own then."""
        many = len(self._refusals) == REFUSED_AT_ONCE and time.monotonic() - self._refusals[0] < 2 * RETRY_SECONDS

        async def free() -> None:
            if many:
                await asyncio.sleep(min(3 * seconds, RETRY_SECONDS))
            leave()
            async with self._freed:
                self._freed.notify()

        if not many:
            await free()
            return
        task = asyncio.ensure_future(free())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _slow_down(self) -> None:
        """Hold back a refusal where there were many of late."""
        now = time.monotonic()
        many = len(self._refusals) == REFUSED_AT_ONCE and now - self._refusals[0] < RETRY_SECONDS
        self._refusals.append(now)
        if many:
            await asyncio.sleep(RETRY_SECONDS)

    async def _enter(self, path: str) -> Callable[[], None] | None:
        """Begin a page, a light one after waiting for its turn."""
        leave = self._bound.enter(path)
        if leave or self._bound.heavy(path) or self._waiting >= WAITING:
            return leave
        self._waiting += 1
        try:
            async with asyncio.timeout(PATIENCE), self._freed:
                while (leave := self._bound.enter(path)) is None:
                    await self._freed.wait()
                return leave
        except TimeoutError:
            return None
        finally:
            self._waiting -= 1


async def _body(receive: Callable[[], Any]) -> bytes | None:
    """The body of a request; None where it does not come in time or is too long to be a form of ours."""
    body: bytes = b""
    try:
        async with asyncio.timeout(RECEIVING):
            while len(body) <= BODY_LIMIT:
                message = await receive()
                body += bytes(message.get("body", b""))
                if not message.get("more_body"):
                    return body
    except TimeoutError:
        pass
    return None


def _received(body: bytes) -> Callable[[], Awaitable[Any]]:
    """A body that has come, as an application receives it; after it nothing comes."""
    messages = [{"type": "http.request", "body": body, "more_body": False}]

    async def receive() -> Any:
        return messages.pop() if messages else await asyncio.Event().wait()

    return receive


def _early(answer: asyncio.Queue[Any], held: list[Any]) -> Callable[[Any], Awaitable[None]]:
    """Passes on at once what a streamed answer has before its end.

    Its end, and the whole of an answer whose length is known, are held: whoever has them finds the place free.
    """

    async def send(message: Any) -> None:
        known = any(name.lower() == b"content-length" for name, _ in message.get("headers", ()))
        ends = message["type"] == "http.response.body" and not message.get("more_body", False)
        if held or known or ends:
            held.append(message)
        else:
            answer.put_nowait(message)

    return send


async def _sent(answer: asyncio.Queue[Any], send: Callable[[Any], Awaitable[None]]) -> None:
    """Send what has come of an answer until None does: who makes it waits for no reader."""
    while (message := await answer.get()) is not None:
        await send(message)


async def _answer(send: Callable[[Any], Awaitable[None]], problem: Refusal) -> None:
    status, more, body = problem
    headers = [(name.lower().encode(), value.encode()) for name, value in _all_headers(more, body).items()]
    await send({"type": "http.response.start", "status": int(status[:3]), "headers": headers})
    await send({"type": "http.response.body", "body": body})


def _all_headers(more: Mapping[str, str], body: bytes) -> dict[str, str]:
    return {**HEADERS, **more, "Content-Type": "text/html; charset=utf-8", "Content-Length": str(len(body))}


def _with_headers(send: Callable[[Any], Awaitable[None]]) -> Callable[[Any], Awaitable[None]]:
    async def own(message: Any) -> None:
        if message["type"] == "http.response.start":
            there = {bytes(name).lower() for name, _ in message["headers"]}
            missing = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
            message = {**message, "headers": [*message["headers"], *(h for h in missing if h[0] not in there)]}
        await send(message)

    return own


class WsgiGuard:
    """The guard before a WSGI application, for servers that are started without uvicorn."""

    def __init__(self, app: Wsgi, prefix: str) -> None:
        self._app, self._bound = app, Bound(prefix)

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """Pass on what is not ours; refuse or count what is."""
        path = environ.get("PATH_INFO", "")
        if not self._bound.covers(path):
            return self._app(environ, start_response)
        leave = None if (problem := refusal(environ.get("HTTP_SEC_FETCH_SITE"))) else self._bound.enter(path)
        if leave is None:
            status, more, body = problem or busy()
            start_response(status, list(_all_headers(more, body).items()))
            return [body]
        try:
            return list(self._app(environ, _adding_headers(start_response)))
        finally:
            leave()


def _adding_headers(start_response: Callable[..., Any]) -> Callable[..., Any]:
    def own(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
        there = {name.lower() for name, _ in headers}
        return start_response(status, headers + [h for h in HEADERS.items() if h[0].lower() not in there], *more)

    return own
