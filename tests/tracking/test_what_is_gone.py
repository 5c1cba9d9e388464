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


COMMANDS = {
    "compare": ("compare", "--no-log"),
    "compare CANDIDATE": ("compare", "CANDIDATE", "--no-log"),
    "compare with BASELINE": ("compare", "CANDIDATE", "--baseline-run", "BASELINE", "--no-log"),
    "report": ("report", "-o", "x.html"),
    "report CANDIDATE": ("report", "CANDIDATE", "-o", "x.html"),
    "report BASELINE": ("report", "BASELINE", "-o", "x.html"),
    "show": ("baseline", "show", "few"),
    "list": ("baseline", "show"),
}


@dataclass(frozen=True)
class Gone:
    """What is done to the store, and what the commands then say: the code, and a part of the message.

    A command that is not named here ends with 0.
    """

    spoil: Callable[[Here], object]
    said: dict[str, tuple[int, str]]


RUN_DELETED = "MLflow run {run} is deleted; restore it first: mlflow runs restore --run-id {run}"
OF_BASELINE = "baseline of golden set `few`: "
RESTORED = "MLflow experiment `the gate` is deleted; restore it: mlflow experiments restore --experiment-id 1"
OR_ANOTHER = f"{RESTORED}, or choose another with --experiment"
PURGED = "run BASELINE is not in sqlite:///STORE/mlflow.db; was it deleted for good, or made in another store?"
NO_RUN = "there is no MLflow run `BASELINE` in sqlite:///STORE/mlflow.db; another store may hold it (MLFLOW_TRACKING"
RENAMED = "there is no MLflow experiment `the gate` in sqlite:///STORE/mlflow.db; existing experiments: `another`"
NONE_LEFT = "{file} of run {run} and all its other artifacts are missing; make their folder available on this"
ONE_LOST = "{file} of run {run} is missing, but its other artifacts exist; restore it, or evaluate again"
ROWS, SUMMARY = "per_question.parquet", "summary.json"


def named_elsewhere(here: Here) -> None:
    tag = here.client.get_experiment(here.experiment_id).tags[BASELINE_TAG]
    here.client.set_experiment_tag(here.experiment_id, BASELINE_TAG, tag.replace(here.baseline, NOBODY))


def on(names: tuple[str, ...], code: int, said: str) -> dict[str, tuple[int, str]]:
    return dict.fromkeys(names, (code, said))


COMPARED = ("compare", "compare CANDIDATE", "compare with BASELINE")
OF_CANDIDATE = ("report", "report CANDIDATE")
GONE = {
    "nothing": Gone(lambda here: None, {}),
    "the candidate, deleted": Gone(
        lambda here: here.client.delete_run(here.candidate),
        {
            "compare": (3, "run BASELINE would be compared with itself; evaluate again"),
            **on((*COMPARED[1:], "report CANDIDATE"), 3, RUN_DELETED.format(run="CANDIDATE")),
        },
    ),
    "the baseline, deleted": Gone(
        lambda here: here.client.delete_run(here.baseline),
        {
            **on(("compare with BASELINE", "report BASELINE"), 3, "Error: " + RUN_DELETED.format(run="BASELINE")),
            **on((*COMPARED[:2], "show"), 3, f"{OF_BASELINE}{RUN_DELETED.format(run='BASELINE')}; or set another: "),
        },
    ),
    "the baseline, deleted for good": Gone(
        lambda here: here.purge(here.baseline),
        {
            **on(("compare with BASELINE", "report BASELINE"), 2, NO_RUN),
            **on((*COMPARED[:2], "show"), 3, f"{OF_BASELINE}{PURGED} Set another: evaltrack baseline set RUN"),
        },
    ),
    "the baseline, of another store": Gone(
        named_elsewhere, on((*COMPARED[:2], "show"), 3, f"{OF_BASELINE}{PURGED.replace('BASELINE', NOBODY)} Set an")
    ),
    "the experiment, deleted": Gone(
        lambda here: here.client.delete_experiment(here.experiment_id),
        {
            **on((*COMPARED[1:], "report CANDIDATE", "report BASELINE"), 3, RESTORED),
            **on(("compare", "report", "show", "list"), 3, OR_ANOTHER),
        },
    ),
    "the experiment, renamed": Gone(
        lambda here: here.client.rename_experiment(here.experiment_id, "another"),
        on(("compare", "report", "show", "list"), 2, RENAMED),
    ),
    "all artifacts of the candidate": Gone(
        lambda here: shutil.rmtree(here.artifacts(here.candidate)),
        {
            **on(COMPARED, 3, NONE_LEFT.format(file=ROWS, run="CANDIDATE")),
            **on(OF_CANDIDATE, 3, NONE_LEFT.format(file=SUMMARY, run="CANDIDATE")),
        },
    ),
    "all artifacts of the baseline": Gone(
        lambda here: shutil.rmtree(here.artifacts(here.baseline)),
        {
            **on(COMPARED, 3, NONE_LEFT.format(file=ROWS, run="BASELINE")),
            **on(("report BASELINE",), 3, NONE_LEFT.format(file=SUMMARY, run="BASELINE")),
            **on(("show",), 3, NONE_LEFT.format(file=ROWS, run="BASELINE")),
        },
    ),
    "the rows": Gone(
        lambda here: (here.artifacts(here.candidate) / ROWS).unlink(),
        on((*COMPARED, *OF_CANDIDATE), 3, ONE_LOST.format(file=ROWS, run="CANDIDATE")),
    ),
    "the summary": Gone(
        lambda here: (here.artifacts(here.candidate) / SUMMARY).unlink(),
        on(OF_CANDIDATE, 3, ONE_LOST.format(file=SUMMARY, run="CANDIDATE")),
    ),
}


@pytest.mark.parametrize("what", GONE)
def test_what_is_gone_has_its_own_message(here: Here, capsys: pytest.CaptureFixture[str], what: str) -> None:
    gone = GONE[what]
    gone.spoil(here)
    names = {"BASELINE": here.baseline, "CANDIDATE": here.candidate, "STORE": str(here.folder)}
    for name, command in COMMANDS.items():
        capsys.readouterr()
        code = cli(*(names.get(word, word) for word in command))
        told = capsys.readouterr().err
        expected, said = gone.said.get(name, (0, ""))
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
    assert cli("baseline", "show", "few", "--output", "json") == 3
    assert [each["run_id"] for each in json.loads(capsys.readouterr().out)] == [here.baseline]
