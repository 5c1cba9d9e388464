"""A PostgreSQL, an S3 and an MLflow server on both, each real, in a folder of their own."""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from scripts.soaking.databases import POSTGRESQL
from scripts.soaking.stores import free_port

PATIENCE = 120.0
"""Seconds for a server to come up."""

KEYS = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench", "AWS_DEFAULT_REGION": "us-east-1"}
"""What moto's S3 takes, as it takes anything."""

BINARIES = "/usr/lib/postgresql/*/bin"
"""Where Debian puts the programs of PostgreSQL, which are not on the PATH."""


@contextmanager
def postgresql(folder: Path) -> Iterator[str]:
    """The URI of an empty database."""
    found = sorted(str(path) for path in Path("/").glob(BINARIES.lstrip("/")))
    os.environ["PATH"] = os.pathsep.join([os.environ["PATH"], *found[-1:]])
    for program in POSTGRESQL.programs:
        if shutil.which(program) is None:
            raise SystemExit(f"{program} is not there; apt-get install postgresql")
    if importlib.util.find_spec(POSTGRESQL.driver) is None:
        raise SystemExit(f"the Python package {POSTGRESQL.driver} is not there; pip install {POSTGRESQL.package}")
    with POSTGRESQL.served(folder) as uri:
        yield uri


def postgresql_log(folder: Path) -> Path:
    """Where the database writes each statement, while it is told to."""
    return folder / "postgresql" / "log"


@contextmanager
def artifacts(folder: Path) -> Iterator[str]:
    """Where artifacts go: a bucket of moto's S3, or a folder where moto is not installed."""
    if any(importlib.util.find_spec(name) is None for name in ("moto", "boto3", "flask_cors")):
        print("artifacts in a folder: pip install 'moto[server]' boto3 puts them in S3")
        yield str(folder / "artifacts")
        return
    port = free_port()
    os.environ |= {**KEYS, "MLFLOW_S3_ENDPOINT_URL": f"http://127.0.0.1:{port}"}
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with running(folder / "moto.log", command, f"http://127.0.0.1:{port}/moto-api/"):
        import boto3

        boto3.client("s3", endpoint_url=os.environ["MLFLOW_S3_ENDPOINT_URL"]).create_bucket(Bucket="evaluations")
        yield "s3://evaluations/mlflow"


@contextmanager
def mlflow_server(folder: Path, database: str, destination: str) -> Iterator[str]:
    """The address of an MLflow server."""
    port = free_port()
    command = [sys.executable, "-m", "mlflow", "server", "--workers", "1"]
    command += ["--port", str(port), "--backend-store-uri", database, "--serve-artifacts"]
    command += ["--artifacts-destination", destination]
    with running(folder / "mlflow.log", command, f"http://127.0.0.1:{port}/health"):
        yield f"http://127.0.0.1:{port}"


@contextmanager
def running(log: Path, command: list[str], url: str) -> Iterator[None]:
    """A server that answers, in a process group of its own."""
    with log.open("ab") as file:
        process = subprocess.Popen(command, cwd=log.parent, stdout=file, stderr=file, start_new_session=True)
    try:
        deadline = time.monotonic() + PATIENCE
        while not _answers(url):
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{command[2]} did not come up: {log.read_text()[-2000:]}")
            time.sleep(0.2)
        yield
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(30)


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5):  # noqa: S310 - our own server
            return True
    except OSError:
        return False
