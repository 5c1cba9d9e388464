"""`evaltrack ui`, as a person starts and ends it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from tests.in_process import called
from tests.mlflow_server import free_port


def lines_until_ready(process: subprocess.Popen[str]) -> list[str]:
    """Its lines on stderr, until it is ready or ends."""
    assert process.stderr
    lines = []
    for line in process.stderr:
        lines.append(line)
        if line.startswith("Ready") or "Uvicorn running" in line:
            break
    return lines


def alive(marker: str) -> list[str]:
    """The processes whose environment holds `marker`."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if marker.encode() in (process / "environ").read_bytes() and "Z (" not in (process / "status").read_text():
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            continue
    return found


@pytest.mark.parametrize("jobs", ["false", pytest.param("true", marks=pytest.mark.long)])
def test_it_serves_the_page_until_it_is_told_to_end(tmp_path: Path, empty_database: Path, jobs: str) -> None:
    """The address is on stderr, the page answers there and under no other name; Ctrl-C ends it with exit code 0."""
    shutil.copy(empty_database, tmp_path / "mlflow.db")
    port, marker = free_port(), f"EVALTRACK_TEST_MARK={tmp_path}"
    name, _, value = marker.partition("=")
    process = subprocess.Popen(
        [sys.executable, "-m", "evaltrack", "ui", "--port", str(port)],
        cwd=tmp_path,
        env={**os.environ, name: value, "MLFLOW_SERVER_ENABLE_JOB_EXECUTION": jobs},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        lines = lines_until_ready(process)
        assert f"http://127.0.0.1:{port}/evaltrack/" in lines[0], "".join(lines)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/evaltrack/", timeout=30) as answer:
            assert b"ui.js" in answer.read()
        foreign = urllib.request.Request(f"http://127.0.0.1:{port}/evaltrack/", headers={"Host": f"10.evil.com:{port}"})
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(foreign, timeout=30)
        assert alive(marker)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=30)
        assert (process.returncode, output) == (0, "")
    finally:
        process.kill()
        process.wait()
    deadline = time.monotonic() + 5
    while alive(marker) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert alive(marker) == []


def test_over_a_server_it_serves_the_pages_to_this_user_alone(tmp_path: Path, server: str) -> None:
    env = {**os.environ, "MLFLOW_TRACKING_URI": server.replace("://", "://me:hidden@")}
    command = [sys.executable, "-m", "evaltrack", "ui", "--port", str(free_port())]
    process = subprocess.Popen(command, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True)
    try:
        (ready,) = lines_until_ready(process)
        assert "hidden" not in ready
        with urllib.request.urlopen(ready.split()[1], timeout=30) as answer:
            assert b"ui.js" in answer.read()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        assert process.returncode == 0
    finally:
        process.kill()
        process.communicate()


def test_a_port_in_use_is_said_at_once(tmp_path: Path, empty_database: Path) -> None:
    shutil.copy(empty_database, tmp_path / "mlflow.db")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ended = called("ui", "--port", str(taken.getsockname()[1]), cwd=tmp_path)
    assert ended.returncode == 2
    assert "choose another with --port" in ended.stderr
