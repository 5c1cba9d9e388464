"""The stores that a soak writes to, each a real one of its own in a folder, with faults where it has a wire."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from evaltrack.tracking.store import connect
from scripts.soaking.databases import MYSQL, POSTGRESQL, Database, interrupted
from tests.faulty_proxy import proxy_process

PATIENCE = 90.0
"""Seconds for a server to come up."""

WIRE = ("503", "dropped", "lost", "cut", "doubled", "delayed")
"""What the wire to MLflow's server does."""

UPLOADS = ("503", "dropped", "lost", "doubled")
"""What the wire to the artifacts does."""


@dataclass(frozen=True)
class Place:
    """Where a soak writes to, where it reads without faults, and how many faults there have been."""

    uri: str
    plain_uri: str
    faults: Callable[[], dict[str, int]] = field(default=dict)


@contextmanager
def _sqlite(folder: Path, _rate: float, _seed: int) -> Iterator[Place]:
    uri = f"sqlite:///{folder}/mlflow.db"
    yield Place(uri, uri)


@contextmanager
def _files(folder: Path, _rate: float, _seed: int) -> Iterator[Place]:
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    uri = (folder / "mlruns").as_uri()
    yield Place(uri, uri)


@contextmanager
def _server(folder: Path, rate: float, seed: int, *options: str) -> Iterator[Place]:
    with mlflow_server(folder, *options) as port, behind_proxy(port, rate, seed) as place:
        yield place


@contextmanager
def _without_artifact_proxy(folder: Path, rate: float, seed: int) -> Iterator[Place]:
    options = ("--no-serve-artifacts", "--default-artifact-root", str(folder / "artifacts"))
    with _server(folder, rate, seed, *options) as place:
        yield place


@contextmanager
def _s3(folder: Path, rate: float, seed: int) -> Iterator[Place]:
    """Artifacts in moto's S3 behind the proxy; the runs in SQLite."""
    _need("boto3", "pip install boto3")
    _need("moto", "pip install 'moto[server]'")
    own = {"AWS_ACCESS_KEY_ID": "soak", "AWS_SECRET_ACCESS_KEY": "soak", "AWS_DEFAULT_REGION": "us-east-1"}
    os.environ.update(own)
    port = free_port()
    command = (sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port))
    with (
        _process(folder, command, f"http://127.0.0.1:{port}/moto-api/"),
        proxy_process(port, UPLOADS, rate, seed) as proxy,
    ):
        os.environ["MLFLOW_S3_ENDPOINT_URL"] = proxy[0]
        import boto3

        boto3.client("s3", endpoint_url=f"http://127.0.0.1:{port}").create_bucket(Bucket="soak")
        uri = f"sqlite:///{folder}/mlflow.db"
        connect(uri).client.create_experiment(folder.name, artifact_location="s3://soak/artifacts")
        yield Place(uri, uri, proxy[1])


def _database(kind: Database) -> Callable[[Path, float, int], AbstractContextManager[Place]]:
    @contextmanager
    def opened(folder: Path, rate: float, seed: int) -> Iterator[Place]:
        _need(kind.driver, f"pip install {kind.package}")
        for program in kind.programs:
            if shutil.which(program) is None:
                raise SystemExit(f"{program} is not there; {kind.install}")
        with kind.served(folder) as uri:
            connect(uri)  # makes the tables
            with interrupted(kind, uri, rate, seed) as faults:
                yield Place(uri, uri, faults)

    return opened


STORES: dict[str, Callable[[Path, float, int], AbstractContextManager[Place]]] = {
    "http": _server,
    "http-no-proxy": _without_artifact_proxy,
    "sqlite": _sqlite,
    "file": _files,
    "postgresql": _database(POSTGRESQL),
    "mysql": _database(MYSQL),
    "s3": _s3,
}
"""By the name that `--store` takes."""


def _need(module: str, cure: str) -> None:
    if importlib.util.find_spec(module) is None:
        raise SystemExit(f"the Python package {module} is not there; {cure}")


@contextmanager
def behind_proxy(port: int, rate: float, seed: int) -> Iterator[Place]:
    """A server of this machine, reached through the proxy."""
    with proxy_process(port, WIRE, rate, seed) as (address, counts):
        yield Place(address, f"http://127.0.0.1:{port}", counts)


@contextmanager
def mlflow_server(folder: Path, *options: str) -> Iterator[int]:
    """A real server on an empty SQLite database; its port."""
    port = free_port()
    command = [sys.executable, "-m", "mlflow", "server", "--port", str(port), "--workers", "1", *options]
    store = ("--backend-store-uri", f"sqlite:///{folder}/mlflow.db")
    with _process(folder, (*command, *store), f"http://127.0.0.1:{port}/health"):
        yield port


@contextmanager
def _process(folder: Path, command: tuple[str, ...], url: str) -> Iterator[None]:
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, start_new_session=True)
    try:
        deadline = time.monotonic() + PATIENCE
        while not _answers(url):
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{command[2]} did not come up: {(folder / 'server.log').read_text()[-2000:]}")
            time.sleep(0.2)
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2):  # noqa: S310 - our own server
            return True
    except OSError:
        return False


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
