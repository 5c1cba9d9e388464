"""A process and all that it starts, its bounds, and command lines of POSIX and of Windows."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltrack.errors import UsageError
from evaltrack.system.processes import end_group, kill_group, own_group, quoted, split_command
from evaltrack.targets.python import open_python
from tests.files import data
from tests.targets.test_command import ends

PARENT = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
print(child.pid, flush=True)
time.sleep(60)
"""
TASKKILL = """#!/bin/sh
echo "$@" > "$0.words"
pkill -KILL -P "$4"
kill -KILL "$4"
"""
"""What the tool of Windows does with these words, for a parent and its children."""


def start() -> tuple[subprocess.Popen[bytes], int]:
    """A process and the number of the one that it started."""
    process = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, **own_group())
    assert process.stdout is not None
    with process.stdout as output:
        return process, int(output.readline())


@pytest.fixture
def without_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """A system that has no process groups, as Windows."""
    monkeypatch.delattr("os.killpg")


def test_a_group_is_killed() -> None:
    process, child = start()
    kill_group(process.pid)
    assert process.wait(5) < 0
    assert ends(child)
    kill_group(process.pid)


def test_a_group_that_ends_when_asked_leaves_nothing() -> None:
    process, child = start()
    end_group(process, 5)
    assert process.returncode == -15
    assert ends(child)


@pytest.mark.usefixtures("without_groups")
def test_taskkill_ends_the_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tool = tmp_path / "taskkill"
    tool.write_text(TASKKILL)
    tool.chmod(0o700)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    process, child = start()
    end_group(process, 5)
    assert (tmp_path / "taskkill.words").read_text() == f"/T /F /PID {process.pid}\n"
    assert process.returncode == -9
    assert ends(child)


@pytest.mark.usefixtures("without_groups")
def test_ctrl_c_of_windows_is_kept_from_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("subprocess.CREATE_NEW_PROCESS_GROUP", 512, raising=False)
    assert own_group() == {"creationflags": 512}


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=20), max_size=5))
def test_what_is_quoted_is_split_again(words: list[str]) -> None:
    line = " ".join(map(quoted, words))
    assert split_command(line) == shlex.split(line) == words


@pytest.mark.parametrize(("line", "words"), data("system.json")["a_backslash_of_windows_is_one"])
def test_a_backslash_of_windows_is_one(line: str, words: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.sep", "\\")
    assert split_command(line) == words


def test_a_backslash_of_posix_quotes() -> None:
    assert split_command(r"ask a\ b # c") == ["ask", "a b", "#", "c"]


def test_a_quotation_that_is_open_is_an_error() -> None:
    with pytest.raises(ValueError, match="No closing quotation"):
        split_command('ask "a')


def test_a_word_for_the_shell_of_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    assert quoted("my set.jsonl") == "'my set.jsonl'"
    monkeypatch.setattr("os.sep", "\\")
    assert quoted("my set.jsonl") == '"my set.jsonl"'


ASK = "from evaltrack.system.processes import *; limit_own_memory(300 << 20); bytearray(int({size}) << 20)"


@pytest.mark.parametrize(("size", "code"), [(1, 0), (2000, 1)])
def test_more_memory_is_refused(size: int, code: int) -> None:
    ended = subprocess.run([sys.executable, "-c", ASK.format(size=size)], capture_output=True, text=True)
    assert (ended.returncode, "MemoryError" in ended.stderr) == (code, bool(code))


def test_windows_has_no_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr("os.killpg")
    with pytest.raises(UsageError, match="memory cannot be bounded on this system"):
        open_python("app:ask", {"memory": "1GB"})
