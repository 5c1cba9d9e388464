"""Whole evaluations in an interpreter that lacks what Windows lacks."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPO
from tests.files import data

AS_ON_WINDOWS = """
import asyncio, contextlib, io, json, os, signal, subprocess, sys
import mlflow, platformdirs.unix  # made for this system, as those above: they need what is taken away now

for module in ("fcntl", "resource", "pwd", "grp", "termios", "tty", "syslog"):
    sys.modules[module] = None
for name in ("fork", "forkpty", "killpg", "setsid", "getpgid", "getuid", "geteuid", "getgid", "getegid", "setuid",
             "nice", "mkfifo", "chown", "getloadavg"):
    delattr(os, name)
for name in ("SIGKILL", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGQUIT", "pthread_sigmask"):
    delattr(signal, name)

from evaltrack.cli import _run

ended = []
for target in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        code = _run(["run", "mine.jsonl", "-t", target, "--judge", "none", "--output", "json"])
    rows = json.loads(printed.getvalue())["rows"]
    ended.append([code, [row["passed"] for row in rows], [row["error"] for row in rows]])
print(json.dumps(ended))
"""
"""`os.sep` stays: the files are those of this system."""

APP = """
import asyncio
async def ask(question, k):
    await asyncio.sleep(0)
    return {"answer": "90 days.", "sources": ["schengen-visa#overstay", "fares"][:k]}
"""
PROGRAM = "import json; print(json.dumps({'answer': '90 days.', 'sources': ['schengen-visa#overstay']}))"
LINES = data("system.json")["lines"]
TARGETS = {
    "bm25:corpus": [0, [True, False], [None, None]],
    "recorded:answers.jsonl": [0, [False, True], [None, None]],
    "python:app:ask": [0, [True, True], [None, None]],
    f"command:{sys.executable} program.py {{question}}": [0, [True, False], [None, None]],
    "command:false {question}": [
        3,
        [None, None],
        ["target_error: ended with exit code 1; it wrote nothing to its standard error"] * 2,
    ],
}
"""What each run ends with: the exit code, which questions passed, and their errors."""


@pytest.fixture
def project(tmp_path: Path, store_uri: str) -> dict[str, str]:
    """A folder with a set, pages, an app, a program and responses; the environment to call evaltrack in."""
    Path("mine.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES))
    Path("app.py").write_text(APP)
    Path("program.py").write_text(PROGRAM)
    Path("answers.jsonl").write_text('{"id": 1, "sources": ["fares"]}\n{"id": 2, "sources": ["fares"]}\n')
    shutil.copytree(REPO / "golden/corpus/travel", "corpus")
    return {**os.environ, "MLFLOW_TRACKING_URI": store_uri, "PYTHONPATH": str(REPO)}


def test_evaluations_without_what_windows_lacks(project: dict[str, str]) -> None:
    command = [sys.executable, "-c", AS_ON_WINDOWS, json.dumps(list(TARGETS))]
    ended = subprocess.run(command, env=project, capture_output=True, text=True, timeout=400)
    assert ended.returncode == 0, ended.stderr
    assert dict(zip(TARGETS, json.loads(ended.stdout), strict=True)) == TARGETS
    assert "Traceback" not in ended.stderr
