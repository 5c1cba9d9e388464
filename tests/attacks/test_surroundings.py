"""Wrong clocks, folders that are deleted, swept or full: a run ends with its verdict, or says why."""

from __future__ import annotations

import gc
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mlflow
import pytest

from evaltrack import Question, Response, run_eval
from evaltrack.errors import TrackingError
from evaltrack.evaluation.loop import Progress
from evaltrack.records import Row
from evaltrack.system.processes import stop_signals
from tests import warm
from tests.api.test_evaluate import golden
from tests.attacks.test_outputs import code, ended, recorded
from tests.files import put
from tests.small_targets import good, worse
from tests.stores import trace_counts
from tests.warm import WarmProcess

NEEDED = 3
"""Questions that have been answered when the surroundings change."""


def status(uri: str) -> str:
    (run,) = mlflow.MlflowClient(uri).search_runs(["0"])
    found: str = run.info.status
    return found


def many(folder: Path, number: int = 12) -> Path:
    lines = ({"id": i, "question": f"q {i}", "expected_chunks": ["a"]} for i in range(number))
    return put(folder / "many.jsonl", lines)


def found(folder: Path) -> tuple[str, ...]:
    return "-t", recorded(folder, "a"), "--traces", "off"


def after_some(act: Callable[[], object]) -> Callable[[Question, int], Response]:
    asked: list[str] = []

    def ask(question: Question, k: int) -> Response:
        asked.append(question.id)
        if len(asked) == NEEDED + 1:
            act()
        return good(question, k)

    return ask


@pytest.mark.parametrize(("years", "speed"), [(-60, 1), (60, 1), (0, 0), (0, 1000), (-60, -1)])
def test_any_clock(store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, years: int, speed: float) -> None:
    real, begun = time.time, time.time()

    def wrong() -> float:
        return begun + years * 365.25 * 86_400 + (real() - begun) * speed

    monkeypatch.setattr(time, "time", wrong)
    monkeypatch.setattr(time, "time_ns", lambda: int(wrong() * 1e9))
    result = run_eval(golden(tmp_path), target=good, tracking_uri=store_uri)
    assert (result.status, status(store_uri)) == ("FINISHED", "FINISHED")
    assert trace_counts(store_uri, result.run_id)[0] == 3
    assert all(row["started_at"] >= 0 for row in result.rows)


def swept(folder: Path) -> None:
    for each in folder.iterdir():
        shutil.rmtree(each) if each.is_dir() else each.unlink()


@pytest.mark.parametrize("sweep", [swept, shutil.rmtree], ids=["swept", "removed"])
def test_a_removed_temporary_folder_loses_no_row(
    store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sweep: Callable[[Path], None]
) -> None:
    (temporary := tmp_path / "temporary").mkdir()
    common = {"tracking_uri": store_uri, "concurrency": 1, "traces": "off"}
    with monkeypatch.context() as patch:
        patch.setattr(tempfile, "tempdir", str(temporary))
        with pytest.raises(TrackingError, match="no finished row is lost; to resume: evaltrack resume"):
            run_eval(many(tmp_path), target=after_some(lambda: sweep(temporary)), **common)
    assert status(store_uri) == "FAILED"
    resumed = run_eval(many(tmp_path), target=good, resume="auto", **common)
    assert resumed.status == "FINISHED"


def fill(folder: Path) -> None:
    subprocess.run(["dd", "if=/dev/zero", f"of={folder / 'filler'}", "bs=512"], capture_output=True)


def test_a_full_temporary_folder_loses_no_row(
    store_uri: str, tmp_path: Path, small_disk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(small_disk))
    target = "python:tests.small_targets:good"  # what was recorded is read again, and not kept
    common = {"tracking_uri": store_uri, "concurrency": 1, "traces": "off", "in_process": True, "target": target}
    full = rf"temporary folder {small_disk}/.*: .*No space left .* set TMPDIR"
    with pytest.raises(TrackingError, match=full) as raised:
        run_eval(many(tmp_path), **common, progress=Heard(lambda: fill(small_disk)))
    assert "no finished row is lost; to resume: evaltrack resume" in str(raised.value)
    del raised
    gc.collect()  # what the error holds has a file on the disk open
    assert status(store_uri) == "FAILED"
    (small_disk / "filler").unlink()
    resumed = run_eval(many(tmp_path), **common, resume="auto")
    assert resumed.status == "FINISHED"
    assert "resumed: 12 of 12 stored rows kept" in resumed.notes


class Heard(Progress):
    """Counts answers, notes each warning with their number, and may do something after some answers."""

    def __init__(self, act: Callable[[], object] = lambda: None) -> None:
        self.answered, self.warnings, self._act = 0, list[tuple[int, str]](), act

    def advance(self, row: Row) -> None:
        self.answered += 1
        if self.answered == NEEDED:
            self._act()

    def warn(self, text: str) -> None:
        self.warnings.append((self.answered, text))


def test_a_journal_that_is_lost_is_said_at_once(
    store_uri: str,
    tmp_path: Path,
    small_disk: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("EVALTRACK_STATE_DIR", str(small_disk))
    heard, target = Heard(), after_some(lambda: fill(small_disk))
    result = run_eval(many(tmp_path, 40), target=target, tracking_uri=store_uri, concurrency=1, progress=heard)
    ((answered, text),) = heard.warnings
    assert NEEDED <= answered < 40
    assert "database or disk is full; set EVALTRACK_STATE_DIR to another folder" in text
    assert (result.status, text in result.notes) == ("FINISHED", True)


def test_a_state_folder_that_cannot_be_made_is_said_before_the_first_question(
    store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EVALTRACK_STATE_DIR")
    monkeypatch.setenv("HOME", "/proc/nothing")
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    heard = Heard()
    assert run_eval(golden(tmp_path), target=good, tracking_uri=store_uri, progress=heard).status == "FINISHED"
    ((answered, text),) = heard.warnings
    assert answered == 0
    assert text.startswith("this run cannot be resumed after an interruption: /proc/nothing/")


@pytest.mark.parametrize(("later", "expected"), [(good, 3), (worse, 1)], ids=["good", "worse"])
def test_a_page_on_a_full_disk(
    store_uri: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], small_disk: Path, later: Any, expected: int
) -> None:
    path = golden(tmp_path)
    was, now = (run_eval(path, target=ask, tracking_uri=store_uri, traces="off").run_id for ask in (good, later))
    page, other = small_disk / "page.html", tmp_path / "other.json"
    page.write_text("older")
    fill(small_disk)
    words = ("compare", now, "--baseline-run", was, "--gate", "seed", "--no-log", "--output", "json")
    assert code(*words, "-o", page, "-o", other) == expected
    written = capfd.readouterr()
    assert f"Error: {page}: cannot be written: No space left on device; name another file\n" in written.err
    assert written.out == other.read_text()
    assert code("report", now, "-o", page) == 3
    assert ({each.name for each in small_disk.iterdir()}, page.read_text()) == ({"page.html", "filler"}, "older")


def test_a_page_that_can_never_be_written_is_refused_before_work(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for command in ("compare", "report"):
        process = ended(tmp_path, "", command, "-o", "file/page.html")
        assert process.returncode == 2
        assert process.stderr == "Error: file/page.html: cannot be written: Not a directory; name another file\n"


def test_a_store_that_cannot_grow(store_uri: str, tmp_path: Path) -> None:
    size = (tmp_path / "store/mlflow.db").stat().st_size
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({size}, {size}))\n"
    process = ended(Path.cwd(), limit, "run", many(tmp_path, 200), "-t", recorded(tmp_path, "a"))
    assert process.returncode == 3
    assert process.stderr.splitlines()[-1].startswith("Error: MLflow: ")
    assert "Traceback" not in process.stderr
    assert "FINISHED" not in [run.info.status for run in mlflow.MlflowClient(store_uri).search_runs(["0"])]


def test_a_working_folder_that_is_gone(store_uri: str, tmp_path: Path) -> None:
    env = {**os.environ, "MLFLOW_TRACKING_URI": store_uri}
    folder = tmp_path / "work"
    removal = f"shutil.rmtree({str(folder)!r}, True)"
    put(folder / "leaving.py", f"import shutil\ndef ask(question):\n    {removal}\n    return ['a']\n")
    during = warm.run(("-m", "evaltrack", "run", str(many(folder)), "-t", "python:leaving:ask"), folder, env)
    assert (during.returncode, status(store_uri)) == (0, "FINISHED")


# Signals that end a process by default

SLOW = "import time\ndef ask(question):\n    open('asked', 'a').write('1')\n    time.sleep(0.05)\n    return ['a']\n"


def test_a_run_that_is_killed_at_once_has_said_how_to_go_on(store_uri: str, tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(SLOW)
    words = ("run", str(many(tmp_path, 2000)), "-t", "python:slow:ask", "--concurrency", "2", "--output", "json")
    asked, deadline = tmp_path / "asked", time.monotonic() + 60
    with WarmProcess(("-m", "evaltrack", *words), tmp_path, {**os.environ, "MLFLOW_TRACKING_URI": store_uri}) as run:
        while not asked.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        run.send_signal(signal.SIGKILL)
        printed, errors = run.communicate(60)
    assert (run.returncode, printed) == (-signal.SIGKILL, "")
    said = re.search(r"^MLflow run (\w{32}); to resume after an interruption: evaltrack resume \1$", errors, re.M)
    assert said, errors
    assert said[1] == mlflow.MlflowClient(store_uri).search_runs(["0"])[0].info.run_id


def test_a_signal_before_the_first_question_leaves_no_run_running(store_uri: str, tmp_path: Path) -> None:
    early = (
        "import signal\nfrom evaltrack.api import run_eval\nsave = run_eval.save_command\n"
        "def saved(*each):\n    os.kill(os.getpid(), signal.SIGTERM)\n    return save(*each)\n"
        "run_eval.save_command = saved\n"
    )
    process = ended(Path.cwd(), early, "run", golden(tmp_path), *found(tmp_path))
    assert (process.returncode, status(store_uri)) == (130, "KILLED")


def test_signals_that_are_handled_or_ignored_stay_so() -> None:
    assert {"SIGINT", "SIGTERM", "SIGHUP", "SIGALRM", "SIGUSR1", "SIGUSR2", "SIGXCPU"} <= {
        number.name for number in stop_signals()
    }
    before = {number: signal.getsignal(number) for number in (signal.SIGHUP, signal.SIGUSR1)}
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.signal(signal.SIGUSR1, lambda *_: None)
        assert not {signal.SIGHUP, signal.SIGUSR1} & set(stop_signals())
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
