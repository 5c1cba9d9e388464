"""The door to MLflow, on a real SQLite store and a real MLflow server."""

from __future__ import annotations

import os
import sqlite3
from contextlib import ExitStack, closing
from importlib import import_module
from operator import attrgetter
from pathlib import Path

import mlflow
import pytest

from evaltrack import run_eval
from evaltrack.cli import _run
from evaltrack.errors import TrackingError
from evaltrack.privacy.addresses import shown_url
from evaltrack.tracking.runs import JOURNAL_TAG, Dataset, Description, OpenRun, close_run, open_run
from evaltrack.tracking.server_retries import reason
from evaltrack.tracking.store import Store, connect
from tests.api.test_evaluate import answers, golden
from tests.files import data
from tests.judging import cli
from tests.stores import trace_counts
from tests.warm import WarmProcess

DATA = Dataset("small", "0" * 64, "small.jsonl", 3)


def opened(store: Store, **params: str) -> OpenRun:
    return open_run(store, None, Description("n", params, {JOURNAL_TAG: "j"}, DATA))


def test_a_real_server_takes_and_returns_everything(server: str, tmp_path: Path) -> None:
    result = run_eval(golden(tmp_path), target=answers, tracking_uri=server, experiment="over http")

    assert result.status == "FINISHED"
    assert [r["id"] for r in result.rows] == ["007", "b", "c"]
    assert trace_counts(server, result.run_id, result.experiment_id)[0] == 3
    assert result.link == f"{server}/#/experiments/{result.experiment_id}/runs/{result.run_id}"
    assert result.serve_command is None


def test_a_store_of_files_holds_everything_but_traces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MLflow's first kind of store, where it is allowed."""
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    uri = (tmp_path / "mlruns").as_uri()
    result = run_eval(golden(tmp_path), target=answers, tracking_uri=uri)

    assert result.status == "FINISHED"
    assert [row["id"] for row in result.rows] == ["007", "b", "c"]


def test_the_run_that_mlflow_run_opened_is_filled(
    store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With MLFLOW_RUN_ID set no second run appears, and params that MLflow logged in another spelling get a prefix."""
    client = mlflow.MlflowClient(store_uri)
    given = client.create_run("0")
    client.log_param(given.info.run_id, "k", "'2'")
    client.log_param(given.info.run_id, "traces", "auto")
    monkeypatch.setenv("MLFLOW_RUN_ID", given.info.run_id)

    result = run_eval(golden(tmp_path), k=2, target=answers, tracking_uri=store_uri)

    assert result.run_id == given.info.run_id
    assert len(client.search_runs(["0"])) == 1
    params = client.get_run(given.info.run_id).data.params
    assert (params["k"], params["evaltrack.k"], params["traces"]) == ("'2'", "2", "auto")
    assert "evaltrack.traces" not in params


def test_a_run_that_is_over_is_not_filled_again(store_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    store = connect(store_uri)
    run = opened(store)
    close_run(store, run, "FINISHED")
    monkeypatch.setenv("MLFLOW_RUN_ID", run.run_id)

    with pytest.raises(TrackingError, match=r"is FINISHED; unset the variable"):
        opened(store)


def test_a_store_that_refuses_a_param_leaves_no_running_run(store_uri: str) -> None:
    store = connect(store_uri)

    with pytest.raises(TrackingError, match="logging params and tags failed"):
        opened(store, **{"bad@name": "x"})

    (run,) = store.client.search_runs(["0"])
    assert run.info.status == "FAILED"


@pytest.mark.parametrize(("uri", "shown"), data("tracking.json")["passwords_are_shown_nowhere"])
def test_passwords_are_shown_nowhere(uri: str, shown: str) -> None:
    assert shown_url(uri) == shown
    assert "secret" not in reason(ValueError(f"cannot reach {uri}\nmore"))


def test_commands_that_start_at_once_share_a_new_store(tmp_path: Path) -> None:
    uri = f"sqlite:///{tmp_path}/mlflow.db"
    code = f"from evaltrack.tracking.store import connect; connect({uri!r}).client.search_experiments()"
    with ExitStack() as started:
        made = [started.enter_context(WarmProcess(("-c", code), tmp_path, os.environ)) for _ in range(4)]
        said = [process.communicate()[1] for process in made]
    assert ([process.returncode for process in made], [text for text in said if "rror" in text]) == ([0] * 4, [])
    assert [each.name for each in tmp_path.iterdir() if each.name.startswith("mlflow.db")] == ["mlflow.db"]


def test_a_store_of_which_only_some_tables_were_made_says_so(tmp_path: Path) -> None:
    path = tmp_path / "mlflow.db"
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE registered_models (name TEXT)")
        database.commit()
    with pytest.raises(TrackingError, match=rf"has only some of MLflow's tables; remove {path}, and run again"):
        connect(f"sqlite:///{path}")


@pytest.mark.parametrize("command", data("tracking.json")["a_store_that_is_not_there_is_not_made"])
def test_a_store_that_is_not_there_is_not_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/mlflow.db")
    (tmp_path / "set.jsonl").write_text('{"id": 1, "question": "?", "expected_chunks": ["a"]}\n')
    assert cli(*command.split()) == 2
    words = "mlflow.db: there is no such file; evaluate first (evaltrack run GOLDEN), run this where that was done, or"
    assert words in capsys.readouterr().err
    assert not (tmp_path / "mlflow.db").exists()


@pytest.fixture
def place(store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the artifacts of the experiment that MLflow's settings choose go: a folder that is not there yet."""
    assert store_uri
    connect().client.create_experiment("mine", artifact_location=str(tmp_path / "made"))
    monkeypatch.setenv("MLFLOW_EXPERIMENT_NAME", "mine")
    return tmp_path / "made"


def test_doctor_tries_an_artifact_and_leaves_none(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _run(["doctor"]) == 0
    assert "can be written to" in capsys.readouterr().out
    assert list(place.iterdir()) == []
    place.rmdir()
    place.touch()
    assert _run(["doctor"]) == 3
    out = "".join(capsys.readouterr())
    assert "can be written to" not in out
    assert f"writing an artifact failed: [Errno 20] Not a directory: '{place}" in out


@pytest.mark.filterwarnings("ignore:starlette.middleware.wsgi")  # MLflow imports what starlette drops
@pytest.mark.parametrize(("module", "name"), data("tracking.json")["the_installed_version_has_the_name"])
def test_the_installed_version_has_the_name(module: str, name: str) -> None:
    assert attrgetter(name)(import_module(module))
