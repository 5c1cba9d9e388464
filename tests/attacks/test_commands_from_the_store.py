"""A person who may write to the tracking store runs nothing on the machines of its readers."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mlflow
import pytest

from evaltrack import RunResult, compare_runs, run_eval
from evaltrack.api.judges import replay_judge
from evaltrack.errors import EvaltrackError, UsageError
from evaltrack.evaluation.resume import saved_command
from evaltrack.tracking.find_runs import find_evaluation
from evaltrack.tracking.store import connect
from tests.files import put

PROGRAM = """import pathlib
pathlib.Path("executed").touch()
print('{"answer": "so", "sources": [{"chunk_id": "y"}]}')
"""
JUDGE = "def judge(question, response):\n    return {'reasoning': 'so', 'overall_score': %s}\n"


@dataclass(frozen=True)
class Store:
    """A store that both may write to, with a golden set and a good baseline of the victim's."""

    uri: str
    golden: Path
    baseline: RunResult
    monkeypatch: pytest.MonkeyPatch
    elsewhere: Path

    @contextmanager
    def attacker(self) -> Iterator[None]:
        with self.monkeypatch.context() as patch:
            patch.setenv("EVALTRACK_STATE_DIR", str(self.elsewhere))
            yield

    def planted(self, target: str, judge: str = "none") -> str:
        with self.attacker():
            run = run_eval(self.golden, target=target, judge=judge, tracking_uri=self.uri, traces="off")
        command: dict[str, Any] = {"golden": str(self.golden), "target": target, "folder": str(Path.cwd())}
        command["settings"] = {"judges": [judge]}
        mlflow.MlflowClient(self.uri).log_dict(run.run_id, command, "command.json")
        return run.run_id


@pytest.fixture
def store(store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Store:
    golden = put(Path("small.jsonl"), [{"id": "a", "question": "What?", "expected_chunks": ["x"]}])
    baseline = run_eval(golden, target=lambda question, k: ["x"], judge="none", tracking_uri=store_uri, traces="off")
    return Store(store_uri, golden, baseline, monkeypatch, tmp_path / "elsewhere")


def program() -> str:
    Path("program.py").write_text(PROGRAM)
    return f"command:{sys.executable} program.py {{question}}"


def test_no_target_that_a_run_names_is_executed(store: Store) -> None:
    planted = store.planted(program())
    Path("executed").unlink()
    found = compare_runs(planted, store.baseline.run_id, tracking_uri=store.uri, log=False)
    assert found.reruns.why_not == f"run {planted} was not evaluated on this machine, so it is not rerun here"
    assert not Path("executed").exists()


def test_no_module_that_a_tag_names_is_imported(store: Store) -> None:
    Path("harmless.py").write_text(JUDGE % 0.5)
    store.monkeypatch.syspath_prepend(str(Path.cwd()))
    planted = store.planted(program(), "harmless:judge")
    Path("harmless.py").write_text("import pathlib; pathlib.Path('imported').touch()\n" + JUDGE % 0.5)
    with pytest.raises(UsageError, match="name what it ran: `judge=JUDGE`"):
        replay_judge(planted, times=1, tracking_uri=store.uri)
    assert not Path("imported").exists()


@pytest.mark.parametrize("run_id", ["../../x", "/etc/passwd", "a" * 200, ""])
def test_a_run_id_leads_to_no_other_file(run_id: str) -> None:
    assert saved_command(run_id) is None


def test_a_run_that_ends_in_the_future_is_not_the_newest(store: Store) -> None:
    """A clock may be some minutes ahead."""
    planted = store.planted(program())
    client = mlflow.MlflowClient(store.uri)
    client.set_terminated(planted, end_time=int((time.time() + 200) * 1000))
    made = compare_runs(baseline=store.baseline.run_id, tracking_uri=store.uri, log=False)
    assert made.candidate.run_id == planted
    client.set_terminated(planted, end_time=4_102_444_800_000)  # in the year 2100
    with store.attacker():
        own = run_eval(store.golden, target=lambda question, k: ["x"], judge="none", tracking_uri=store.uri)
    made = compare_runs(baseline=store.baseline.run_id, tracking_uri=store.uri, log=False)
    assert made.candidate.run_id == own.run_id


def test_a_judge_of_another_machine_is_replayed_with_what_the_user_names(store: Store) -> None:
    """Numbers in a forged signature are checked."""
    for name in ("judge_a", "judge_b"):
        Path(f"{name}.py").write_text(JUDGE % 0.5)
    store.monkeypatch.syspath_prepend(str(Path.cwd()))
    planted = store.planted(program(), "judge_a:judge")
    with pytest.raises(UsageError, match="the run was judged by judge_a:judge, not by judge_b:judge"):
        replay_judge(planted, times=1, judge="judge_b:judge", tracking_uri=store.uri)
    assert replay_judge(planted, times=1, judge="judge_a:judge", tracking_uri=store.uri).noise == 0
    client = mlflow.MlflowClient(store.uri)
    signature = find_evaluation(connect(store.uri), planted).signature
    for forged in ({"k": 10**9}, {"pass_threshold": 7.0}):
        client.set_tag(planted, "evaltrack.signature", signature.model_copy(update=forged).model_dump_json())
        with pytest.raises(EvaltrackError):
            replay_judge(planted, times=1, judge="judge_a:judge", tracking_uri=store.uri)


@pytest.mark.skipif(os.geteuid() != 0, reason="only the superuser gives files away")
def test_a_saved_command_of_another_user_is_not_executed(store: Store) -> None:
    target = program()
    run = run_eval(store.golden, target=target, judge="none", tracking_uri=store.uri, traces="off")
    assert saved_command(run.run_id) is not None
    commands = Path(os.environ["EVALTRACK_STATE_DIR"]) / "commands"
    for path in (commands / f"{run.run_id}.json", commands):
        os.chown(path, 54321, -1)
        found = compare_runs(run.run_id, store.baseline.run_id, tracking_uri=store.uri, log=False)
        assert "was not evaluated on this machine" in str(found.reruns.why_not)
        os.chown(path, 0, -1)
