"""The run of an evaluation: inside a run that the program has open, and how far it is, in a tag."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import mlflow
import pytest

from evaltrack import RunResult, run_eval, write_golden
from evaltrack.api.run_several import run_sets

QUESTIONS = [{"question": "first?", "expected_chunks": ["a"]}, {"question": "second?", "expected_chunks": ["b"]}]


@pytest.fixture(autouse=True)
def own_store(store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    monkeypatch.setenv("EVALTRACK_STATE_DIR", str(tmp_path / "state"))
    before = mlflow.get_tracking_uri()
    mlflow.set_tracking_uri(store_uri)
    yield store_uri
    mlflow.set_tracking_uri(before)


def ask(_question: str) -> list[str]:
    return ["a"]


def evaluated(**settings: str) -> RunResult:
    return run_eval(QUESTIONS, target=ask, **settings)  # type: ignore[arg-type]


def parent_of(run_id: str) -> str | None:
    parent: str | None = mlflow.get_run(run_id).data.tags.get("mlflow.parentRunId")
    return parent


def test_a_run_is_nested_in_that_of_the_program(tmp_path: Path) -> None:
    experiment = mlflow.create_experiment("outer")
    golden = write_golden(QUESTIONS, tmp_path / "mine.jsonl")
    with mlflow.start_run(experiment_id=experiment) as outer:
        result = evaluated()
        sets = run_sets([golden.path], target=ask)
        mlflow.log_metric("own", 1)
        active = mlflow.active_run()
        assert active is not None
        assert active.info.run_id == outer.info.run_id
    assert (result.experiment_id, parent_of(result.run_id)) == (experiment, outer.info.run_id)
    assert (sets.experiment_id, parent_of(sets.run_id)) == (experiment, outer.info.run_id)
    ended = mlflow.get_run(outer.info.run_id)
    assert (ended.info.status, ended.data.metrics, ended.data.params) == ("FINISHED", {"own": 1}, {})


def test_a_run_elsewhere_is_not_nested(tmp_path: Path) -> None:
    with mlflow.start_run():
        assert parent_of(evaluated(experiment="other").run_id) is None
        assert parent_of(evaluated(experiment="Default").run_id) is not None
        other = f"sqlite:///{tmp_path}/other.db"
        elsewhere = evaluated(tracking_uri=other)
    assert "mlflow.parentRunId" not in mlflow.MlflowClient(other).get_run(elsewhere.run_id).data.tags


def test_threads_evaluate_beside_each_other() -> None:
    results: list[RunResult] = []
    with mlflow.start_run():
        threads = [threading.Thread(target=lambda: results.append(evaluated())) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert len({result.run_id for result in results}) == 3
    assert [(result.status, len(result.rows)) for result in results] == [("FINISHED", 2)] * 3
    assert {parent_of(result.run_id) for result in results} == {None}
