"""Downloads through connections that break off."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlflow.exceptions import MlflowException

from evaltrack.tracking import store as stores
from evaltrack.tracking.store import Store, connect
from tests.conftest import REPO

sys.path.insert(0, str(REPO / "scripts"))
from soak import Proxy, _answers, _free_port

ROWS = "per_question.txt"


class _CutsDownloads(Proxy):
    """Breaks off the first replies that carry an artifact, half-way."""

    cuts = 0

    def __init__(self, upstream: int) -> None:
        super().__init__(upstream, rate=0.0, seed=0, counts=[0, 0, 0, 0])

    async def _pass_on(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, cut: bool
    ) -> None:
        if ROWS.encode() in head.split(b"\r\n")[0] and head.startswith(b"GET ") and self.cuts:
            self.cuts -= 1
            cut = True
        await super()._pass_on(head, reader, writer, cut=cut)


@pytest.fixture
def proxy(server: str) -> Iterator[tuple[_CutsDownloads, str]]:
    """A proxy before the server, and its address."""
    passes_on, port, stop = _CutsDownloads(int(server.rpartition(":")[2])), _free_port(), threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(_serve(passes_on, port, stop)), daemon=True)
    thread.start()
    address = f"http://127.0.0.1:{port}"
    while not _answers(address):
        time.sleep(0.05)
    yield passes_on, address
    stop.set()
    thread.join(10)


async def _serve(proxy: Proxy, port: int, stop: threading.Event) -> None:
    serving = asyncio.create_task(proxy.serve(port))
    while not stop.is_set():  # noqa: ASYNC110 - the event is another thread's
        await asyncio.sleep(0.05)
    serving.cancel()


def logged(store: Store, tmp_path: Path) -> str:
    """A run that holds one artifact."""
    (tmp_path / ROWS).write_text("a row\n" * 1000)
    run = store.client.create_run("0")
    store.client.log_artifact(run.info.run_id, str(tmp_path / ROWS))
    return run.info.run_id


def test_a_download_that_breaks_off_is_tried_again(proxy: tuple[_CutsDownloads, str], tmp_path: Path) -> None:
    """Two broken connections in a row cost a second, not the run."""
    passes_on, address = proxy
    store = connect(address)
    run_id = logged(store, tmp_path)
    (folder := tmp_path / "read").mkdir()
    passes_on.cuts = 2
    assert store.download(run_id, ROWS, folder).read_text() == "a row\n" * 1000
    assert passes_on.cuts == 0


def test_a_download_that_never_comes_is_an_error(
    proxy: tuple[_CutsDownloads, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the last try MLflow's error stands."""
    monkeypatch.setattr(stores, "DOWNLOAD_PAUSES", (0.0, 0.0))
    passes_on, address = proxy
    store = connect(address)
    run_id = logged(store, tmp_path)
    (folder := tmp_path / "read").mkdir()
    passes_on.cuts = 1000
    with pytest.raises(MlflowException, match=ROWS):
        store.download(run_id, ROWS, folder)
