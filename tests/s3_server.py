"""A real S3 server of this machine, moto's, in a process of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

import pytest

PATIENCE = 60.0
BUCKET = "evaluations"
KEYS = {"AWS_ACCESS_KEY_ID": "stand-in", "AWS_SECRET_ACCESS_KEY": "stand-in", "AWS_DEFAULT_REGION": "us-east-1"}
NEEDS_S3 = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("moto", "flask_cors")), reason="moto[s3] is not installed"
)


@contextmanager
def s3_server(folder: Path) -> Iterator[str]:
    """The address of a server with an empty bucket; what it says goes to a file in `folder`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)]
    with (folder / "s3.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
    try:
        end = time.monotonic() + PATIENCE
        while not _listens(port):
            assert process.poll() is None, (folder / "s3.log").read_text()
            assert time.monotonic() < end
            time.sleep(0.1)
        _make_bucket(port)
        yield f"http://127.0.0.1:{port}"
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait(PATIENCE)


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def _make_bucket(port: int) -> None:
    from pyarrow.fs import S3FileSystem

    store = S3FileSystem(
        access_key=KEYS["AWS_ACCESS_KEY_ID"],
        secret_key=KEYS["AWS_SECRET_ACCESS_KEY"],
        region=KEYS["AWS_DEFAULT_REGION"],
        endpoint_override=f"127.0.0.1:{port}",
        scheme="http",
        allow_bucket_creation=True,
    )
    store.create_dir(BUCKET)
