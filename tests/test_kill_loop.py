"""The loop of kills in a small form; `scripts/kill_loop.py` runs it at length."""

from __future__ import annotations

import os
import re
import subprocess

from . import warm
from .conftest import REPO


def kill_loop(*arguments: str) -> subprocess.CompletedProcess[str]:
    return warm.run((str(REPO / "scripts" / "kill_loop.py"), *arguments), REPO, os.environ)


def test_kills_at_random_moments_lose_and_double_nothing() -> None:
    """Five kills: the same metrics, every row once, and no more paid for twice than was in flight."""
    ended = kill_loop("--kills", "5", "--questions", "40", "--seed", "1", "--forked")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    last = ended.stdout.splitlines()[-1]
    figures = re.match(r"5 kills \(.*\) in \d+ chains of 40 questions, .*: calls paid again (\d+), ", last)
    assert figures, last
    assert int(figures[1]) <= 5 * 8
    assert last.endswith("chains with a problem 0")


def test_kills_before_a_server_that_loses_replies_double_nothing(server: str) -> None:
    """Each request that was under way at a kill may still arrive: no run is left RUNNING, nothing is there twice."""
    words = ("--kills", "2", "--questions", "15", "--seed", "3", "--forked", "--mlflow-faults", "0.08")
    ended = kill_loop(*words, "--server", server.rpartition(":")[2])
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert ended.stdout.splitlines()[-1].endswith("chains with a problem 0")


def test_what_it_is_for_is_told() -> None:
    """`--help` names the options."""
    ended = kill_loop("--help")
    assert ended.returncode == 0
    assert all(option in ended.stdout for option in ("--kills", "--questions", "--seed", "--store", "--full-disk"))
