"""The last runs of golden sets from the database itself: what MLflow's search gives, in a few queries."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from mlflow.entities import Metric
from sqlalchemy import event, text

from evaltrack.metrics.catalogue import HEADLINES
from evaltrack.records import Signature
from evaltrack.records.past_run import PastRun
from evaltrack.tracking import server_runs
from evaltrack.tracking.history import newest_runs, past_run, past_runs
from evaltrack.tracking.server_runs import last_evaluations, last_runs, runs_with_ids
from evaltrack.tracking.store import Store, connect


def add(store: Store, golden: str, number: int, recall: float = 0.5) -> str:
    signature = Signature(golden=golden, golden_digest="0", k=5, target="t").model_dump_json()
    tags = {"evaltrack.golden": golden, "evaltrack.signature": signature, "mlflow.user": "somebody"}
    run_id: str = store.client.create_run(
        "0", start_time=1000 + number, run_name=f"run {number}", tags=tags
    ).info.run_id
    values = {"recall_at_k": recall, "n/recall_at_k": 3.0, "n/mrr": 2.0, "num_questions": 4.0, "num_errors": 1.0}
    store.client.log_batch(run_id, [Metric(name, value, 0, 0) for name, value in values.items()])
    return run_id


def headlines(runs: list[PastRun]) -> list[PastRun]:
    """Those of MLflow's search, with the metrics that are read here."""
    names = {score.metric for score in HEADLINES}
    return [
        replace(
            run,
            metrics={name: value for name, value in run.metrics.items() if name in names},
            counts={name: value for name, value in run.counts.items() if name in names},
        )
        for run in runs
    ]


@pytest.fixture
def store(store_uri: str) -> Store:
    """Three runs of one set, two of another, one of them deleted, and a run that is no evaluation."""
    store = connect(store_uri)
    for number, golden in enumerate(("one", "two", "one", "two", "one")):
        add(store, golden, number, recall=float("nan") if number == 2 else 0.5)
    store.client.delete_run(past_runs(store, "0", "two")[0].run_id)
    store.client.create_run("0", start_time=9999)
    return store


def test_it_gives_what_mlflows_search_gives(store: Store) -> None:
    """Newest first, so many of each set, without what is deleted; a value that is not a number is no mean."""
    made = last_runs(store, ["0"], ["one", "two"], 2)
    assert made is not None
    assert {golden: [run.name for run in runs] for (_, golden), runs in made.items()} == {
        "one": ["run 4", "run 2"],
        "two": ["run 1"],
    }
    assert made["0", "one"] == headlines(past_runs(store, "0", "one", 2))
    assert made["0", "one"][0].counts == {"recall_at_k": 3, "mrr": 2}
    assert not made["0", "one"][1].metrics
    assert last_evaluations(store, ["0"], 3) == headlines(newest_runs(store, ["0"], 3))
    one = past_run(store, made["0", "two"][0].run_id)
    assert runs_with_ids(store, [one.run_id, "gone"]) == {one.run_id: headlines([one])[0]}
    assert last_runs(store, [], ["one"], 2) == runs_with_ids(store, []) == {}


def test_a_query_is_the_same_whatever_the_number_of_runs(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three queries read them, with their tags and metrics; what is read in all is bounded."""
    engine = store.client._tracking_client.store.engine
    queries: list[str] = []
    event.listen(engine, "before_cursor_execute", lambda *args: queries.append(args[2]))

    def asked() -> list[str]:
        queries.clear()
        made = last_runs(store, ["0"], ["one", "two"], 5000)
        assert made is not None
        assert {run.counts["mrr"] for run in made["0", "one"]} == {2}
        return [each for each in queries if each.startswith("SELECT")]

    few = asked()
    note_many(store, 1200)
    assert asked() == few
    assert len(few) == 3
    monkeypatch.setattr(server_runs, "MOST", 2)
    assert sum(map(len, (last_runs(store, ["0"], ["one", "two"], 9) or {}).values())) == 2


def note_many(store: Store, number: int) -> None:
    own = past_runs(store, "0", "one")[0].run_id
    with store.client._tracking_client.store.engine.begin() as connection:
        for table in ("runs", "tags", "latest_metrics"):
            rows = (
                connection.execute(text(f"select * from {table} where run_uuid = :own"), {"own": own}).mappings().all()
            )
            copies = [{**row, "run_uuid": f"copy{at}"} for row in rows for at in range(number)]
            names = ", ".join(rows[0])
            values = ", ".join(f":{name}" for name in rows[0])
            connection.execute(text(f"insert into {table} ({names}) values ({values})"), copies)


def test_a_store_with_other_tables_is_searched(store: Store) -> None:
    """The answer is None where there is no database, or one in which something is called otherwise."""
    assert last_evaluations(_with_engine(None), ["0"], 3) is None
    from sqlalchemy import create_engine

    empty = _with_engine(create_engine("sqlite://"))
    assert last_evaluations(empty, ["0"], 3) is None
    assert last_runs(empty, ["0"], ["one"], 3) is None
    assert runs_with_ids(empty, ["1"]) is None


def _with_engine(engine: Any) -> Any:
    store = SimpleNamespace(engine=engine) if engine else SimpleNamespace()
    return SimpleNamespace(client=SimpleNamespace(_tracking_client=SimpleNamespace(store=store)))
