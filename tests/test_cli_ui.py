"""`evaltrack ui`, as a person starts and ends it."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from .conftest import evaltrack


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


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


def test_it_serves_the_page_until_it_is_told_to_end(tmp_path: Path, empty_database: Path) -> None:
    """The address is said on stderr, the page answers there, Ctrl-C ends all of it with exit code 0."""
    shutil.copy(empty_database, tmp_path / "mlflow.db")
    port, marker = free_port(), f"EVALTRACK_TEST_MARK={tmp_path}"
    name, _, value = marker.partition("=")
    process = subprocess.Popen(
        [sys.executable, "-m", "evaltrack", "ui", "--port", str(port)],
        cwd=tmp_path,
        env={**os.environ, name: value},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stderr
        lines = []
        for line in process.stderr:
            lines.append(line)
            if line.startswith("Ready"):
                break
        assert f"http://127.0.0.1:{port}/evaltrack/" in lines[-1], "".join(lines)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/evaltrack/", timeout=30) as answer:
            assert b"Golden sets" in answer.read()
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


def test_a_server_shows_the_page_itself(tmp_path: Path) -> None:
    """Where MLFLOW_TRACKING_URI names a server, the message says how that is started; no password in it."""
    ended = evaltrack("ui", cwd=tmp_path, env={"MLFLOW_TRACKING_URI": "http://me:secret@mlflow.example:5000"})
    assert ended.returncode == 2
    assert "mlflow server --app-name evaltrack" in ended.stderr
    assert "secret" not in ended.stderr


def test_a_port_in_use_is_said_at_once(tmp_path: Path, empty_database: Path) -> None:
    """With the way out."""
    shutil.copy(empty_database, tmp_path / "mlflow.db")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        ended = evaltrack("ui", "--port", str(taken.getsockname()[1]), cwd=tmp_path)
    assert ended.returncode == 2
    assert "choose another with --port" in ended.stderr


def test_help_shows_examples(tmp_path: Path) -> None:
    """And names both options."""
    ended = evaltrack("ui", "--help", cwd=tmp_path)
    assert ended.returncode == 0
    assert "Examples:" in ended.stdout
    assert "--host" in ended.stdout
    assert "--port" in ended.stdout
