"""The process that has imported what pages need: a page from it is one from a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaltrack.server import page_process
from evaltrack.server.page_jobs import OutcomesJob
from evaltrack.server.page_process import WarmProcess, new_page

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="libraries are forked on Linux alone")
MEMORY, SECONDS, SIZE = 1536 << 20, 20, 1 << 20


@pytest.fixture(scope="module")
def warm() -> Iterator[WarmProcess]:
    made = WarmProcess(page_process._environment())
    yield made
    made.close()


def run(warm: WarmProcess, folder: Path, task: bytes, seconds: int = SECONDS) -> tuple[int | None, bytes, bytes]:
    """The exit code of a page's process with this input, and what it wrote."""
    (folder / "in").write_bytes(task)
    with (folder / "in").open("rb") as todo, (folder / "out").open("wb") as out, (folder / "err").open("wb") as err:
        code = warm.make([str(MEMORY), str(seconds), str(SIZE)], seconds, (todo, out, err))
    return code, (folder / "out").read_bytes(), (folder / "err").read_bytes()


def test_a_page_is_made_whether_there_is_such_a_process_or_not(
    warm: WarmProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same bytes; where it cannot be started each page has a process that imports for itself."""
    job = OutcomesJob(())
    monkeypatch.setattr(page_process, "_warm", lambda: warm)
    assert new_page(job, lambda _folder: ()) == b""
    closed = WarmProcess({})
    monkeypatch.setattr(closed, "start", lambda: None)
    monkeypatch.setattr(page_process, "_warm", lambda: closed)
    assert new_page(job, lambda _folder: ()) == b""


def test_what_ends_a_page_is_reported(warm: WarmProcess, tmp_path: Path) -> None:
    """A fault with its traceback, a signal as a negative code; the next page is made all the same."""
    code, _, problems = run(warm, tmp_path, b"no pickle")
    assert code == 1
    assert b"UnpicklingError" in problems
    assert run(warm, tmp_path, b"cos\nabort\n(tR.")[0] == -signal.SIGABRT
    assert run(warm, tmp_path, b"no pickle")[0] == 1


def test_a_page_that_hangs_is_ended(warm: WarmProcess, tmp_path: Path) -> None:
    with pytest.raises(subprocess.TimeoutExpired):
        run(warm, tmp_path, b"ctime\nsleep\n(I60\ntR.", seconds=1)


def test_no_secret_of_the_server_reaches_it(warm: WarmProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    made = WarmProcess(page_process._environment())
    try:
        _, out, _ = run(made, tmp_path, b"cos\nsystem\n(Venv\ntR.")
    finally:
        made.close()
    assert b"PATH=" in out
    assert b"secret" not in out


def test_one_that_died_is_started_again(warm: WarmProcess, tmp_path: Path) -> None:
    warm.start()
    assert warm._process is not None
    first = warm._process.pid
    os.kill(first, signal.SIGKILL)
    warm._process.wait()
    assert run(warm, tmp_path, b"no pickle")[0] == 1
    assert warm._process.pid != first
