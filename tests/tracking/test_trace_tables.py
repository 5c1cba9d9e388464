"""Traces that are inserted many at a time: the same rows as those of MLflow's own API."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mlflow.exceptions import MlflowException
from mlflow.store.tracking.dbmodels.models import SqlTraceInfo
from sqlalchemy import event

from evaltrack.rows.stored_parts import StoredSource, StoredTurn, StoredVerdict
from evaltrack.rows.stored_row import StoredRow
from evaltrack.tracking import traces as module
from evaltrack.tracking.store import Store, connect
from evaltrack.tracking.trace_rows import NewTrace
from evaltrack.tracking.trace_tables import TraceTables
from evaltrack.tracking.traces import forget_traces, read_counts, write_traces
from tests import warm

RUN = "a" * 32
ANSWERS = ("Paris", '"quoted"', '{"a": [1]}', "1", "ü 漢 😀 \\ud83d", "x" * 3000, "null", "", None)
CASES = [
    *(StoredRow(id=f"a{n}", question=f"q{n}", answer=answer) for n, answer in enumerate(ANSWERS)),
    StoredRow(id="e", question="", error="target_error: boom", traceback="Traceback: …", passed=None, expected=()),
    StoredRow(id="d", question="\t", abstained=True, sources=(), expected=(), scores={"negative_pass": 1.0}),
    StoredRow(
        id="j" * 300,
        question="q" * 2000,
        domain="d",
        difficulty="hard",
        category="c" * 2000,
        answer="yes",
        expected_answer="no",
        passed=False,
        expected=("a", "b"),
        scores={"hit": 1.0, "recall_at_k": 0.1 + 0.2, "overall_score": 0.5, "own": 1e-300},
        own=("own",),
        sources=(StoredSource(chunk_id="a", title="T", url="http://x", score=0.25, text='{"b": 1}'), StoredSource()),
        verdicts=(StoredVerdict(judge="openai:m", reasoning="so", overall_score=0.5), StoredVerdict(judge="human")),
        history=(StoredTurn(content="before"), StoredTurn(role="assistant", content="ä")),
    ),
]
TIMES = ((0.0, 0.0), (1_700_000_000.1235, 0.0005), (1_700_000_000.9999, 12.3456))
ROWS = [
    replace(row, id=f"{n}{row.id}", started_at=at, seconds=took) for n, (at, took) in enumerate(TIMES) for row in CASES
]

DIES = """
import os, signal, sys
from sqlalchemy import Engine, event
from evaltrack.rows.stored_row import StoredRow
from evaltrack.tracking.store import connect
from evaltrack.tracking.traces import write_traces

done = 0
def note(number):
    global done
    done = number
@event.listens_for(Engine, "before_cursor_execute")
def die(connection, cursor, statement, parameters, context, executemany):
    if done == 200 and statement.startswith("INSERT INTO spans"):
        os.kill(os.getpid(), signal.SIGKILL)
rows = [StoredRow(id=str(n), question=f"q{n}", answer="a", passed=True) for n in range(250)]
write_traces(connect(sys.argv[1]), "0", sys.argv[2], rows, (), note)
"""


def new_traces(rows: list[StoredRow]) -> list[NewTrace]:
    """The rows as traces."""
    return [module._new_trace(row, "0", RUN, {"q1"}) for row in rows]


def tables_of(store: Store, by_mlflow: Callable[[list[NewTrace]], object]) -> TraceTables:
    """Those of the default experiment."""
    return TraceTables(module._client(store).store, "0", by_mlflow)


def by_mlflow(store: Store) -> Callable[[list[NewTrace]], None]:
    """MLflow's own way."""
    return partial(module._write_by_mlflow, store, "0")


def contents(store: Store) -> dict[str, list[Any]]:
    """Every row of every table that a trace may have rows in; and each trace as MLflow reads it."""
    session_maker = module._client(store).store.ManagedSessionMaker
    with session_maker() as session:
        tables = {
            table.name: sorted(map(str, session.execute(table.select()).all()))
            for table in SqlTraceInfo.metadata.sorted_tables
            if table.name != "experiments"
        }
    return {name: rows for name, rows in tables.items() if rows}


@pytest.fixture
def store(store_uri: str) -> Store:
    """An empty store."""
    return connect(store_uri)


@pytest.fixture
def other(store: Store, tmp_path: Path) -> Store:
    """Another with the same experiment, to which MLflow alone writes."""
    shutil.copy(tmp_path / "store" / "mlflow.db", tmp_path / "other.db")
    return connect(f"sqlite:///{tmp_path}/other.db")


def test_the_rows_are_those_that_mlflow_writes(store: Store, other: Store) -> None:
    """Column for column, in all tables; and read by MLflow's client, field for field."""
    traces, others = new_traces(ROWS), []
    tables_of(store, lambda some: (others.extend(some), by_mlflow(store)(some))).write(traces)
    by_mlflow(other)(traces)
    assert others == traces[:1]
    ours, theirs = contents(store), contents(other)
    assert ours == theirs
    assert {name for name in ours if "trace" in name or name in ("spans", "assessments")} == {
        *("trace_info", "trace_tags", "trace_request_metadata", "spans", "assessments")
    }
    for trace in traces:
        made, expected = (each.client.get_trace(trace.info.trace_id).to_dict() for each in (store, other))
        assert made == expected


def test_a_trace_that_is_there_already_is_there_once(store: Store, other: Store) -> None:
    """As after a reply that was lost; MLflow writes such traces again itself."""
    traces, calls = new_traces(ROWS[:6]), []
    write = tables_of(store, lambda some: (calls.append(len(some)), by_mlflow(store)(some))).write
    write(traces)
    write(traces[2:])
    assert calls == [1, 4]
    by_mlflow(other)(traces)
    made, expected = (
        {trace.info.trace_id: trace.to_dict() for trace in each.client.search_traces(locations=["0"])}
        for each in (store, other)
    )
    assert len(made) == 6
    assert made == expected


def test_a_trace_that_its_target_began_is_completed_by_mlflow(store: Store) -> None:
    """It has rows already, with which these are merged."""
    calls: list[list[NewTrace]] = []
    traces = [replace(trace, is_joined=True) for trace in new_traces(ROWS[:2])]
    tables_of(store, calls.append).write(traces)
    assert calls == [traces]


def test_where_mlflow_writes_more_it_writes_all(store: Store) -> None:
    """A later version may have a tag, a column or a table that we know nothing of."""
    calls: list[int] = []

    def with_a_tag(traces: list[NewTrace]) -> None:
        calls.append(len(traces))
        by_mlflow(store)(traces)
        for trace in traces:
            store.client.set_trace_tag(trace.info.trace_id, "new", "1")

    write = tables_of(store, with_a_tag).write
    write(new_traces(ROWS[:4]))
    write(new_traces(ROWS[4:6]))
    assert calls == [1, 3, 2]


def test_where_mlflow_sums_traces_up_by_day_it_writes_all(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of its own writes announces itself to these sums."""
    monkeypatch.setenv("MLFLOW_SQL_TRACE_ROLLUPS_ENABLED", "true")
    calls: list[list[NewTrace]] = []
    traces = new_traces(ROWS[:3])
    tables_of(store, calls.append).write(traces)
    assert calls == [traces]


def test_what_mlflow_refuses_is_refused(store: Store) -> None:
    """A deleted experiment takes no trace, even where it was there for the first."""
    experiment_id = store.client.create_experiment("gone")
    client = module._client(store)
    tables = TraceTables(client.store, experiment_id, partial(module._write_by_mlflow, store, experiment_id))
    traces = [module._new_trace(row, experiment_id, RUN, ()) for row in ROWS[:4]]
    tables.write(traces[:2])
    store.client.delete_experiment(experiment_id)
    with pytest.raises(MlflowException, match="must be in the 'active' state"):
        tables.write(traces[2:])
    store.client.restore_experiment(experiment_id)
    assert read_counts(store, experiment_id, RUN).traces == 2


def test_the_number_of_transactions_does_not_grow_with_the_traces(store: Store) -> None:
    """One for each hundred, after the first trace."""
    commits: list[int] = []
    engine = module._client(store).store.engine
    rows = [StoredRow(id=str(n), question="q", answer="a") for n in range(401)]
    inserts: list[str] = []

    def note(*arguments: Any) -> None:
        if arguments[2].startswith("INSERT INTO trace_info"):
            inserts.append(arguments[2])

    event.listen(engine, "before_cursor_execute", note)
    counts = write_traces(store, "0", RUN, rows, {"q"}, commits.append)
    event.remove(engine, "before_cursor_execute", note)
    assert commits == [100, 200, 300, 400, 401]
    assert len(inserts) == 1 + 5
    assert counts.gap(read_counts(store, "0", RUN)) is None


def test_a_run_that_is_killed_while_it_inserts_has_whole_traces_and_then_all(store_uri: str) -> None:
    """Each transaction is there whole or not at all; what is resumed doubles nothing."""
    ended = warm.run(("-c", DIES, store_uri, RUN), Path.cwd(), os.environ)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    store = connect(store_uri)
    rows = [StoredRow(id=str(n), question=f"q{n}", answer="a", passed=True) for n in range(250)]
    counts = read_counts(store, "0", RUN)
    assert (counts.traces, counts.spans, counts.assessments) == (200, 200, 200)
    forget_traces(store, "0", RUN)
    assert read_counts(store, "0", RUN).traces == 0
    assert write_traces(store, "0", RUN, rows).gap(read_counts(store, "0", RUN)) is None
    named = [trace.info.client_request_id for trace in store.client.search_traces(locations=["0"], max_results=500)]
    assert sorted(named) == sorted(row.id for row in rows)
    assert json.loads(store.client.get_trace(module.trace_id_of(RUN, "249")).data.request)["question"] == "q249"
