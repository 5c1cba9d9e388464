"""MLflow's own server for the tests, forked from a process that has imported what it needs."""

from __future__ import annotations

import os
import re
import secrets
import shutil
import signal
import socket
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from .warm import WarmProcess


class MlflowServer(WarmProcess):
    """`mlflow server` with its own SQLite database in a folder, with one worker and no jobs.

    With `--artifacts-only` it has no database.
    """

    def __init__(self, folder: Path, *options: str, env: dict[str, str] | None = None) -> None:
        self.folder, self.address = folder, ""
        command = ["-m", "mlflow", "server", "--port", "0", "--workers", "1", *options]
        own = {**os.environ, **(env or {}), "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
        with self.log.open("ab") as log:
            store = () if "--artifacts-only" in options else ("--backend-store-uri", f"sqlite:///{folder}/mlflow.db")
            super().__init__((*command, *store), folder, own, log, new_session=True)

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def wait_until_ready(self, path: str = "/health") -> None:
        """Wait until it has told its address and answers there."""
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            if self.poll() is not None:
                pytest.fail(f"the MLflow server ended: {self.log.read_text()[-2000:]}")
            if told := re.search(r"running on (http://\S+)", self.log.read_text()):
                self.address = told[1]
                with suppress(OSError), urllib.request.urlopen(self.address + path, timeout=2):
                    return
            time.sleep(0.05)
        pytest.fail(f"the MLflow server did not come up: {self.log.read_text()[-2000:]}")

    def stop(self, number: int = signal.SIGTERM) -> None:
        if self.poll() is None:
            os.killpg(self.pid, number)
        self.wait(20)

    def __exit__(self, *_: object) -> None:
        self.stop()
        self.close()


def copied_store(folder: Path, database: Path) -> None:
    folder.mkdir()
    shutil.copy(database, folder / "mlflow.db")


@contextmanager
def served_store(folder: Path, database: Path, *options: str) -> Iterator[str]:
    copied_store(folder, database)
    with MlflowServer(folder, *options) as process:
        process.wait_until_ready()
        yield process.address


def free_port() -> int:
    """A port for a server that cannot choose one: below those that the system gives away, so that no other takes it."""
    while True:
        port = 20_000 + secrets.randbelow(10_000)
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
