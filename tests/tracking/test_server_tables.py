"""Whole runs from the database itself: what MLflow's own reading gives."""

from __future__ import annotations

from typing import Any

import pytest
from mlflow.entities import Metric, Param
from sqlalchemy import create_engine, event

from evaltrack.tracking import server_tables
from evaltrack.tracking.server_tables import database_of, engine_of, newest_runs, run_with_id
from evaltrack.tracking.store import NewestRuns, Store, connect


@pytest.fixture
def store(store_uri: str) -> Store:
    """Six runs of two golden sets, one deleted, and one that is no evaluation."""
    store = connect(store_uri)
    for number in range(6):
        tags = {"evaltrack.golden": "ab"[number % 2], "own": "x"}
        run_id = store.client.create_run("0", start_time=1000 + number, run_name=f"run {number}", tags=tags).info.run_id
        metrics = [Metric("m", float("nan") if number == 2 else 0.5, 7, 3), Metric("n", number, 7, 0)]
        store.client.log_batch(run_id, metrics, [Param("p", str(number))])
        if number < 4:
            store.client.set_terminated(run_id, end_time=2000 + number)
        if number == 3:
            store.client.delete_run(run_id)
    store.client.create_run("0", start_time=9999)
    return store


def parts(run: Any) -> Any:
    """What of a run is compared; a value that is not a number differs from itself."""
    return dict(run.info), {**run.data.metrics, "m": str(run.data.metrics["m"])}, run.data.params, run.data.tags


def test_a_run_is_as_mlflow_reads_it(store: Store) -> None:
    engine: Any = database_of(store)
    for each in store.client.search_runs(["0"], "tags.own = 'x'", run_view_type=3):
        made = run_with_id(engine, each.info.run_id)
        assert made is not None
        assert parts(made) == parts(each)
    assert run_with_id(engine, "0" * 32) is None


@pytest.mark.parametrize(
    ("wanted", "numbers"),
    [
        (NewestRuns(("0",), "a", 9), "420"),
        (NewestRuns(("0",), "b", 9), "51"),
        (NewestRuns(("0",), None, 3), "542"),
        (NewestRuns(("0",), None, 9, finished=True), "210"),
        (NewestRuns(("0",), None, 9, until=1002, since=1001), "21"),
        (NewestRuns((), None, 9), ""),
    ],
)
def test_the_newest_are_found(store: Store, wanted: NewestRuns, numbers: str) -> None:
    runs = newest_runs(database_of(store), wanted)  # type: ignore[arg-type]
    assert runs is not None
    assert "".join(run.info.run_name.removeprefix("run ") for run in runs) == numbers


def test_the_number_of_queries_does_not_grow_with_the_runs(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four; only above `AT_ONCE` runs there are more."""
    engine: Any = database_of(store)
    statements: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *each: statements.append(each[2]))
    newest_runs(engine, NewestRuns(("0",), None, 9))
    assert len(statements) == 4
    monkeypatch.setattr(server_tables, "AT_ONCE", 3)
    assert len(newest_runs(engine, NewestRuns(("0",), None, 9)) or ()) == 5


def test_a_database_with_other_tables_is_no_answer() -> None:
    engine = create_engine("sqlite://")
    assert run_with_id(engine, "1") is None
    assert newest_runs(engine, NewestRuns(("0",), None, 9)) is None


def test_a_store_of_workspaces_is_never_passed_by(store_uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It hides the runs of other workspaces, which the tables beneath it do not."""
    from mlflow.store.tracking.sqlalchemy_store import SqlAlchemyStore
    from mlflow.store.tracking.sqlalchemy_workspace_store import WorkspaceAwareSqlAlchemyStore

    monkeypatch.setenv("MLFLOW_ENABLE_WORKSPACES", "true")
    of_workspaces = WorkspaceAwareSqlAlchemyStore(store_uri, "artifacts")
    assert of_workspaces.engine is not None
    assert engine_of(of_workspaces) is None
    assert engine_of(SqlAlchemyStore(store_uri, "artifacts")) is not None
