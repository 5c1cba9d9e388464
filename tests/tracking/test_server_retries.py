"""How long a server that does not answer is waited for, and what an error of MLflow's client says of the reply."""

from __future__ import annotations

import os
import re
import sys
import time
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import TEMPORARILY_UNAVAILABLE
from sqlalchemy.exc import DBAPIError

from evaltrack.errors import TrackingError
from evaltrack.system import retries
from evaltrack.system.retries import Policy
from evaltrack.tracking.runs import Dataset, log_dataset
from evaltrack.tracking.server_retries import has_no_reply
from evaltrack.tracking.store import Store, connect, tracking_errors
from tests.faulty_proxy import Rules, proxy_thread

READ = "GET .*/experiments/get"


def test_a_server_that_starts_anew_is_waited_for(server: str) -> None:
    """Six refused connections are more than MLflow alone repeats a request here; the seventh gets its answer."""
    rules = Rules()
    with proxy_thread(server, rules) as uri:
        store = connect(uri)
        rules.rules = [(READ, "dropped", 6)]
        assert store.client.get_experiment("0").experiment_id == "0"
    assert rules.counts[READ] == 6
    assert "MLFLOW_HTTP_REQUEST_MAX_RETRIES" not in os.environ


def tries(server: str, fault: str, message: str) -> int:
    """How often a request is sent to a server that fails in this way for ever, before that is an error."""
    rules = Rules()
    with proxy_thread(server, rules) as uri:
        store = connect(uri)
        rules.rules = [(READ, fault, 1000)]
        with pytest.raises(MlflowException, match=message):
            store.client.get_experiment("0")
    return rules.counts[READ]


def test_patience_ends(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "SERVER_IS_SILENT", Policy(0.2, 4.0, seconds=1.0))
    start = time.monotonic()
    assert tries(server, "503", "too many 503") > 1
    assert 0.5 < time.monotonic() - start < 5


def test_what_the_user_sets_stays(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With MLFLOW_HTTP_REQUEST_MAX_RETRIES set, MLflow alone decides how often a request is repeated."""
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    assert tries(server, "503", "too many 503") == 1


def test_replies_that_always_break_off_are_an_error(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "SERVER_IS_SILENT", Policy(0.2, 4.0, seconds=1.0))
    assert tries(server, "cut", "Connection broken") > 1


def test_a_refusal_is_no_silence(server: str) -> None:
    rules = Rules([(READ, None, 1000)])
    with proxy_thread(server, rules) as uri, pytest.raises(MlflowException, match="No Experiment"):
        connect(uri).client.get_experiment("4711")
    assert rules.counts[READ] == 1


ROWS = "per_question.txt"
DOWNLOAD = f"GET .*{ROWS}"


def logged(store: Store, tmp_path: Path) -> str:
    (tmp_path / ROWS).write_text("a row\n" * 1000)
    run = store.client.create_run("0")
    store.client.log_artifact(run.info.run_id, str(tmp_path / ROWS))
    return run.info.run_id


def test_a_download_that_breaks_off_is_tried_again(server: str, tmp_path: Path) -> None:
    (folder := tmp_path / "read").mkdir()
    rules = Rules([(DOWNLOAD, "cut", 2)])
    with proxy_thread(server, rules) as address:
        store = connect(address)
        assert store.download(logged(store, tmp_path), ROWS, folder).read_text() == "a row\n" * 1000
    assert rules.counts[DOWNLOAD] == 2


def test_a_download_that_never_comes_is_an_error(server: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retries, "SERVER_IS_SILENT", Policy(0.2, 4.0, seconds=1.0))
    (folder := tmp_path / "read").mkdir()
    with proxy_thread(server, Rules([(DOWNLOAD, "cut", 1000)])) as address:
        store = connect(address)
        run_id = logged(store, tmp_path)
        with pytest.raises(MlflowException, match=ROWS):
            store.download(run_id, ROWS, folder)


RACE = "(sqlite3.IntegrityError) UNIQUE constraint failed: datasets.experiment_id, datasets.name, datasets.digest"


@pytest.mark.parametrize(("error", "times", "calls"), [(RACE, 3, 4), (RACE, 4, None), ("disk full", 1, None)])
def test_a_set_that_another_run_just_named_is_named_again(error: str, times: int, calls: int | None) -> None:
    errors, called = [error] * times, list[object]()

    def log_inputs(*arguments: Any) -> None:
        called.append(arguments)
        if errors:
            raise MlflowException(errors.pop())

    store: Any = Store("sqlite://", SimpleNamespace(log_inputs=log_inputs))  # type: ignore[arg-type]
    with nullcontext() if calls else pytest.raises(MlflowException, match=re.escape(error)):
        log_dataset(store, "run", Dataset("a", "d" * 64, "p", 1))
    assert len(called) == (calls or times)


def from_database(message: str, *, ended: bool) -> MlflowException:
    error = MlflowException(message)
    error.__cause__ = DBAPIError("insert", {}, Exception(), connection_invalidated=ended)
    return error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (from_database("terminating connection", ended=True), True),  # it may have done what was asked
        (from_database("duplicate key", ended=False), False),
        (MlflowException("Invalid value '<html>' for `name`"), False),
        (MlflowException("the database is gone", error_code=TEMPORARILY_UNAVAILABLE), True),
    ],
)
def test_a_missing_reply_is_told_from_others(error: Exception, expected: bool) -> None:
    assert has_no_reply(error) == expected


def test_a_reply_is_understood_without_sqlalchemy(monkeypatch: pytest.MonkeyPatch) -> None:
    """`mlflow-skinny` comes without it."""
    monkeypatch.setitem(sys.modules, "sqlalchemy.exc", None)
    assert not has_no_reply(MlflowException("duplicate key"))


def test_what_a_kind_of_artifact_store_raises_is_an_error_of_tracking() -> None:
    said = "logging x failed: the bucket is gone"
    with pytest.raises(TrackingError, match=said), tracking_errors("logging x"):
        raise RuntimeError("the bucket is gone")
