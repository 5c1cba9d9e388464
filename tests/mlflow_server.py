"""MLflow's own server for the tests, forked from a process that has imported what it needs."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from .warm import WarmProcess


class MlflowServer(WarmProcess):
    """`mlflow server` with its own SQLite database in a folder, with one worker and no jobs.

    With `--artifacts-only` it has no database.
    """

    def __init__(self, folder: Path, *options: str, port: int = 0, env: dict[str, str] | None = None) -> None:
        self.folder, self.port = folder, port or free_port()
        self.address = f"http://127.0.0.1:{self.port}"
        command = ["-m", "mlflow", "server", "--port", str(self.port), "--workers", "1", *options]
        own = {**os.environ, **(env or {}), "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": "false"}
        with self.log.open("ab") as log:
            store = () if "--artifacts-only" in options else ("--backend-store-uri", f"sqlite:///{folder}/mlflow.db")
            super().__init__((*command, *store), folder, own, log, new_session=True)

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def wait_until_ready(self, path: str = "/health") -> None:
        """Wait until it answers."""
        deadline = time.monotonic() + 90
        while time.monotonic() < deadline:
            if self.poll() is not None:
                pytest.fail(f"the MLflow server ended: {self.log.read_text()[-2000:]}")
            try:
                with urllib.request.urlopen(self.address + path, timeout=2):
                    return
            except OSError:
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
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
