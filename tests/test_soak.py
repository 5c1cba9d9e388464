from __future__ import annotations

import os
import re
import subprocess
from importlib.util import find_spec

import pytest

from . import warm
from .conftest import REPO


def soak(*arguments: str) -> subprocess.CompletedProcess[str]:
    return warm.run((str(REPO / "scripts" / "soak.py"), *arguments), REPO, os.environ)


@pytest.mark.parametrize(
    ("questions", "share"), [("400", "0.25"), pytest.param("2000", "0.05", marks=pytest.mark.long)]
)
def test_a_target_and_a_server_that_fail_lose_no_row(server: str, questions: str, share: str) -> None:
    port = server.rpartition(":")[2]
    amounts = ("--questions", questions, "--faults", share, "--mlflow-faults", "0.04")
    ended = soak(*amounts, "--seed", "1", "--server", port)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    told = dict(re.findall(r"^(.+?)  +(.+)$", ended.stdout, re.MULTILINE))
    assert told["rows lost"] == "0"
    faults, errors = (int(told[name].split()[0]) for name in ("target's faults", "error rows"))
    assert 60 < errors <= faults < 150
    assert int(told["store's faults"].split()[0]) > 0


@pytest.mark.skipif(find_spec("boto3") is not None, reason="boto3 is there")
def test_what_a_store_needs_is_told() -> None:
    ended = soak("--store", "s3", "--questions", "10")
    assert ended.returncode == 1
    assert ended.stderr == "the Python package boto3 is not there; pip install boto3\n"
