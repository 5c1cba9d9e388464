"""Signals that end a process by default: a run ends as KILLED with what was done, from the moment that it is open."""

from __future__ import annotations

import os
import re
import signal
import time
from pathlib import Path

from mlflow import MlflowClient

from evaltrack.system.processes import stop_signals
from tests.api.test_evaluate import golden
from tests.attacks.test_outputs import ended
from tests.attacks.test_surroundings import found, many, status
from tests.warm import WarmProcess

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
    words_of_run = re.search(
        r"^MLflow run (\w{32}); to resume after an interruption: evaltrack resume \1$", errors, re.M
    )
    assert words_of_run, errors
    assert words_of_run[1] == newest(store_uri)


def newest(store_uri: str) -> str:
    return next(iter(MlflowClient(store_uri).search_runs(["0"], max_results=1))).info.run_id


def test_a_signal_before_the_first_question_leaves_no_run_running(store_uri: str, tmp_path: Path) -> None:
    early = (
        "import signal\nfrom evaltrack.api import evaluate\nsave = evaluate.save_command\n"
        "def saved(*each):\n    os.kill(os.getpid(), signal.SIGTERM)\n    return save(*each)\n"
        "evaluate.save_command = saved\n"
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
