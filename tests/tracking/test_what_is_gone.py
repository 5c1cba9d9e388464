"""Runs, experiments and artifacts that were deleted, renamed or are elsewhere: each its own message, with a cure."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import mlflow
import pytest

from evaltrack import Response, Source, run_eval
from tests.files import data
from tests.judging import cli, store_in
from tests.stores import copy_store

EXPERIMENT = "the gate"
BASELINE_TAG = "evaltrack.baseline.few"
NOBODY = "0123456789abcdef" * 2
"""The id of a run that is in no store."""


@dataclass(frozen=True)
class Here:
    folder: Path
    experiment_id: str
    baseline: str
    candidate: str

    @property
    def uri(self) -> str:
        return f"sqlite:///{self.folder}/mlflow.db"

    @property
    def client(self) -> mlflow.MlflowClient:
        return mlflow.MlflowClient(self.uri)

    def artifacts(self, run_id: str) -> Path:
        return Path(self.client.get_run(run_id).info.artifact_uri)

    def purge(self, run_id: str) -> None:
        """Delete a run for good, as `mlflow gc` does."""
        with closing(sqlite3.connect(self.folder / "mlflow.db")) as database, database:
            for table in ("metrics", "latest_metrics", "params", "tags", "runs"):
                database.execute(f"delete from {table} where run_uuid = ?", [run_id])


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory, empty_database: Path) -> Here:
    folder = tmp_path_factory.mktemp("gone")
    golden = folder / "few.jsonl"
    golden.write_text('{"id": 1, "question": "What?", "expected_chunks": ["a"]}\n')
    with store_in(folder, empty_database) as uri:
        runs = [
            run_eval(
                golden,
                target=lambda question, k: Response(answer="x", sources=(Source(chunk_id="a"),)),
                experiment=EXPERIMENT,
                traces="off",
                tracking_uri=uri,
            )
            for _ in range(2)
        ]
        client = mlflow.MlflowClient(uri)
        promoted = {"golden": "few", "run_id": runs[0].run_id, "by": "me", "at": "2026-01-01T00:00:00+00:00"}
        client.set_experiment_tag(runs[0].experiment_id, BASELINE_TAG, json.dumps({**promoted, "reason": ""}))
    return Here(folder, runs[0].experiment_id, runs[0].run_id, runs[1].run_id)


@pytest.fixture
def here(original: Here, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Here]:
    copy_store(original.folder, tmp_path / "store")
    made = Here(tmp_path / "store", original.experiment_id, original.baseline, original.candidate)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", made.uri)
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", EXPERIMENT)
    monkeypatch.chdir(tmp_path)
    mlflow.set_tracking_uri(made.uri)
    yield made
    mlflow.set_tracking_uri(None)


def named_elsewhere(here: Here) -> None:
    tag = here.client.get_experiment(here.experiment_id).tags[BASELINE_TAG]
    here.client.set_experiment_tag(here.experiment_id, BASELINE_TAG, tag.replace(here.baseline, NOBODY))


GONE: dict[str, Callable[[Here], object]] = {
    "nothing": lambda here: None,
    "the candidate, deleted": lambda here: here.client.delete_run(here.candidate),
    "the baseline, deleted": lambda here: here.client.delete_run(here.baseline),
    "the baseline, deleted for good": lambda here: here.purge(here.baseline),
    "the baseline, of another store": named_elsewhere,
    "the experiment, deleted": lambda here: here.client.delete_experiment(here.experiment_id),
    "the experiment, renamed": lambda here: here.client.rename_experiment(here.experiment_id, "another"),
    "all artifacts of the candidate": lambda here: shutil.rmtree(here.artifacts(here.candidate)),
    "all artifacts of the baseline": lambda here: shutil.rmtree(here.artifacts(here.baseline)),
    "the rows": lambda here: (here.artifacts(here.candidate) / "per_question.parquet").unlink(),
    "the summary": lambda here: (here.artifacts(here.candidate) / "summary.json").unlink(),
}
"""What is done to the store."""

TOLD = data("what_is_gone.json")
"""Commands, and what they then say: the exit code and a part of the message; those that are not named end with 0."""


@pytest.mark.parametrize("what", GONE)
def test_what_is_gone_has_its_own_message(here: Here, capsys: pytest.CaptureFixture[str], what: str) -> None:
    GONE[what](here)
    names = {"BASELINE": here.baseline, "CANDIDATE": here.candidate, "STORE": str(here.folder)}
    for name, command in TOLD["commands"].items():
        capsys.readouterr()
        code = cli(*(names.get(word, word) for word in command.split()))
        told = capsys.readouterr().err
        expected, said = TOLD["said"][what].get(name, (0, ""))
        for short, whole in names.items():
            said = said.replace(short, whole)
        assert code == expected, (name, told)
        assert said in told, name
        assert "internal" not in told


def test_to_look_for_an_experiment_creates_none(here: Here) -> None:
    for command in (["compare"], ["report", "-o", "x.html"], ["baseline", "show", "few"], ["baseline", "show"]):
        assert cli(*command, "--experiment", "no such") == 2
    assert here.client.get_experiment_by_name("no such") is None


def test_a_baseline_that_is_gone_is_shown_nevertheless(here: Here, capsys: pytest.CaptureFixture[str]) -> None:
    here.client.delete_run(here.baseline)
    capsys.readouterr()
    assert cli("baseline", "show", "few", "--output", "json") == 0
    assert [each["run_id"] for each in json.loads(capsys.readouterr().out)] == [here.baseline]
