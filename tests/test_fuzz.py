from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from . import warm
from .conftest import REPO

SCRIPT = str(REPO / "scripts" / "fuzz.py")


def fuzz(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return warm.run((SCRIPT, *map(str, arguments)), REPO, os.environ)


@pytest.mark.parametrize("seconds", ["1", pytest.param("20", marks=pytest.mark.long)])
def test_every_reader_expects_what_it_is_given(tmp_path: Path, seconds: str) -> None:
    command = [sys.executable, SCRIPT, "--seconds", seconds, "--seed", "1", "--keep", tmp_path]  # forked: too large
    ended = subprocess.run(command, cwd=REPO, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    *told, last = ended.stdout.splitlines()
    *readers, memory = told
    assert len(readers) == 23
    assert int(memory.partition(" MB of memory at most")[0]) < 500
    figures = re.fullmatch(r"([\d,]+) bytes fed in ([\d,]+) inputs: 0 findings", last)
    assert figures, last
    assert int(figures[1].replace(",", "")) > 100_000


def test_an_input_that_was_kept_is_fed_again(tmp_path: Path) -> None:
    path = tmp_path / "01 completion"
    path.write_bytes(b"[" * 100_000)
    ended = fuzz("--replay", path)
    assert ended.returncode == 0
    assert ended.stdout.startswith("AnswerError: the server answered with text that is not JSON")
