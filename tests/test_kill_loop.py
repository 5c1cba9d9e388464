from __future__ import annotations

import os
import re
import signal
import subprocess

import pytest

from . import warm
from .conftest import REPO

PATIENCE = 1800
LONG = pytest.mark.long


def kill_loop(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = (str(REPO / "scripts" / "kill_loop.py"), *arguments)
    with warm.WarmProcess(command, REPO, os.environ) as process:
        try:
            out, err = process.communicate(PATIENCE)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGTERM)  # it takes down what it has started
            raise
        return subprocess.CompletedProcess(command, process.wait(), out, err)


@pytest.mark.parametrize(("kills", "questions"), [(1, 8), pytest.param(20, 40, marks=LONG)])
def test_kills_at_random_moments_lose_and_double_nothing(kills: int, questions: int) -> None:
    ended = kill_loop("--kills", str(kills), "--questions", str(questions), "--seed", "1", "--forked")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    last = ended.stdout.splitlines()[-1]
    said = rf"{kills} kills \(.*\) in \d+ chains of {questions} questions, .*: calls paid again (\d+), "
    figures = re.match(said, last)
    assert figures, last
    assert int(figures[1]) <= kills * 8
    assert last.endswith("chains with a problem 0")


@pytest.mark.parametrize(("kills", "questions"), [(1, 15), pytest.param(8, 15, marks=LONG)])
def test_kills_before_a_server_that_loses_replies_double_nothing(server: str, kills: int, questions: int) -> None:
    words = ("--kills", str(kills), "--questions", str(questions), "--seed", "3", "--forked", "--faults", "0.08")
    ended = kill_loop(*words, "--server", server)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.splitlines()[-1].endswith("chains with a problem 0")
