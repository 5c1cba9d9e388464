"""Whoever reads our pages, however often at once, holds no thread of MLflow's server while waiting."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from evaltrack import run_eval
from evaltrack.server import bounds
from evaltrack.server.bounds import HEAVY, LIGHT, REFUSED_AT_ONCE, RETRY_SECONDS, WAITING, AsgiGuard, WsgiGuard
from evaltrack.server.page_process import PageCache
from tests.conftest import REPO
from tests.server.test_pages import Answer, Browser, served_page

PREFIX = "/team/evaltrack"


@dataclass
class SlowApp:
    go: asyncio.Event = field(default_factory=asyncio.Event)
    begun: list[str] = field(default_factory=list)

    async def __call__(self, scope: Any, receive: Any, send: Callable[[Any], Awaitable[None]]) -> None:
        self.begun.append(scope["path"])
        if scope["path"].startswith(PREFIX):
            await self.go.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})


@dataclass
class Got:
    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""


async def ask(guard: AsgiGuard, path: str, **headers: str) -> Got:
    got = Got()

    async def send(message: Any) -> None:
        if message["type"] == "http.response.start":
            got.status = message["status"]
            got.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        got.body += message.get("body", b"")

    sent = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    await guard({"type": "http", "method": "GET", "path": path, "headers": sent}, asyncio.Event().wait, send)
    return got


def test_heavy_pages_above_the_bound_are_refused_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "RETRY_SECONDS", 1)

    async def attack() -> None:
        app = SlowApp()
        guard = AsgiGuard(app, PREFIX)
        pages = [f"{PREFIX}/{name}" for name in ("drift", "run")] * 24
        made = [asyncio.create_task(ask(guard, page)) for page in pages]
        await asyncio.wait(made, timeout=0.2)
        refused = [task.result() for task in made if task.done()]
        assert len(refused) == REFUSED_AT_ONCE  # the others are refused when who asked may come again
        for got in refused:
            assert (got.status, got.headers["retry-after"], got.headers["refresh"]) == (503, "1", "1")
            assert got.headers["x-content-type-options"] == "nosniff"
        assert (await ask(guard, "/team/api/2.0/mlflow/runs/search")).status == 200
        app.go.set()
        assert [(await task).status for task in made].count(200) == HEAVY
        await asyncio.sleep(1)  # while many ask a place rests
        assert (await ask(guard, f"{PREFIX}/drift")).status == 200

    asyncio.run(attack())


def test_other_pages_wait_without_a_thread() -> None:
    async def attack() -> None:
        app = SlowApp()
        guard = AsgiGuard(app, PREFIX)
        made = [asyncio.create_task(ask(guard, f"{PREFIX}/")) for _ in range(50)]
        await asyncio.wait(made, timeout=0.2)
        assert len(app.begun) == LIGHT
        app.go.set()
        statuses = [(await task).status for task in made]
        assert statuses.count(200) == LIGHT + WAITING
        assert statuses.count(503) == 50 - LIGHT - WAITING

    asyncio.run(attack())


def test_a_request_of_another_site_is_refused() -> None:
    async def attack() -> None:
        guard = AsgiGuard(SlowApp(), PREFIX)
        got = await ask(guard, f"{PREFIX}/drift", sec_fetch_site="cross-site")
        assert got.status == 403
        assert b'<a href="">' in got.body
        for site in ("same-origin", "same-site", "none"):
            task = asyncio.create_task(ask(guard, f"{PREFIX}/golden", sec_fetch_site=site))
            await asyncio.wait([task], timeout=0.05)
            assert not task.done()
            task.cancel()

    asyncio.run(attack())


def test_a_form_that_does_not_come_holds_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "RECEIVING", 0.2)

    async def attack() -> None:
        app = SlowApp()
        app.go.set()
        guard = AsgiGuard(app, PREFIX)
        answers: list[Any] = []

        async def keep(message: Any) -> None:
            answers.append(message)

        scope = {"type": "http", "method": "POST", "path": f"{PREFIX}/baseline", "headers": []}
        slow = [asyncio.create_task(guard(dict(scope), asyncio.Event().wait, keep)) for _ in range(10)]
        await asyncio.sleep(0.05)
        assert (await asyncio.wait_for(ask(guard, f"{PREFIX}/"), 0.1)).status == 200
        await asyncio.gather(*slow)
        assert {message["status"] for message in answers if "status" in message} == {408}

    asyncio.run(attack())


def test_a_reader_that_is_slow_to_read_holds_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "SENDING", 0.3)

    async def attack() -> None:
        app = SlowApp()
        app.go.set()
        guard = AsgiGuard(app, PREFIX)
        scope = {"type": "http", "method": "GET", "path": f"{PREFIX}/drift", "headers": []}

        async def never(_message: Any) -> None:
            await asyncio.Event().wait()

        slow = [asyncio.create_task(guard(dict(scope), asyncio.Event().wait, never)) for _ in range(3 * HEAVY)]
        await asyncio.sleep(0.05)
        assert (await ask(guard, f"{PREFIX}/drift")).status == 200
        await asyncio.wait_for(asyncio.gather(*slow), 2)

    asyncio.run(attack())


def test_a_page_that_fails_gives_its_place_back() -> None:
    async def broken(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError("no page")

    async def attack() -> None:
        guard = AsgiGuard(broken, PREFIX)
        for _ in range(3 * HEAVY):
            with pytest.raises(RuntimeError, match="no page"):
                await ask(guard, f"{PREFIX}/drift")

    asyncio.run(attack())


def test_without_uvicorn_the_same_bound_holds() -> None:
    statuses: list[str] = []

    def start(status: str, headers: list[tuple[str, str]], *more: Any) -> None:
        statuses.append(status)

    guard = WsgiGuard(lambda environ, begin: begin("200 OK", []) or nested(environ), PREFIX)
    environ = {"PATH_INFO": f"{PREFIX}/drift", "left": 5}

    def nested(environ: dict[str, Any]) -> list[bytes]:
        return list(guard({**environ, "left": environ["left"] - 1}, start)) if environ["left"] else [b""]

    list(guard(environ, start))
    assert statuses == ["200 OK"] * HEAVY + ["503 Service Unavailable"]
    list(guard({**environ, "left": 0}, start))
    assert statuses[-1] == "200 OK"


def test_the_cache_of_pages_is_bounded_in_bytes() -> None:
    cache = PageCache(100)
    for name in "abc":
        cache.put(name, b"x" * 40)
        cache.get("a")
    assert [cache.get(name) is not None for name in "abc"] == [True, False, True]
    cache.put("d", b"x" * 200)
    assert cache.get("d") is None


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Iterator[str]:
    with served_page(tmp_path_factory.mktemp("stalled") / "server", empty_database) as where:
        yield where


def test_forty_eight_readers_at_once(address: str) -> None:
    before, now = (
        run_eval(REPO / "golden/travel.jsonl", k=5, tracking_uri=address, judge="none", traces="off") for _ in range(2)
    )
    ids = {"experiment_id": now.experiment_id, "candidate": now.run_id, "baseline": before.run_id}

    def read(number: int) -> Answer:
        browser = Browser(address)
        return (
            browser.get("run", experiment_id=ids["experiment_id"], run_id=now.run_id)
            if number % 2
            else browser.get("drift", **ids)
        )

    with ThreadPoolExecutor(48) as pool:
        answers = list(pool.map(read, range(48)))
    assert {answer.status for answer in answers} == {200, 503}
    assert all(answer.headers["retry-after"] == "5" for answer in answers if answer.status == 503)
    time.sleep(RETRY_SECONDS)  # while many ask a place rests
    assert read(0).status == 200
