"""Whole runs from the server's own database in four queries, whatever their number.

MLflow's own reading also takes the inputs, models and outputs of each run, and makes an object of each row on its way:
ten times as long. Where the database has not MLflow's tables of today the answer is None, and MLflow is to be asked.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable, Iterable, Sequence
from math import nan
from typing import TYPE_CHECKING, Any

from evaltrack.tracking.store import NewestRuns, Store

if TYPE_CHECKING:
    from mlflow.entities import Run
    from sqlalchemy import Connection, Engine, Select

GOLDEN = "evaltrack.golden"

AT_ONCE = 500
"""Runs of one query: databases bound the values in one."""

_COLUMNS = (
    *("run_uuid", "experiment_id", "user_id", "status", "start_time", "end_time"),
    *("lifecycle_stage", "artifact_uri", "name"),
)

_log = logging.getLogger(__name__)


def database_of(store: Store) -> Engine | None:
    """The database of a store; None where it is none, or is reached otherwise."""
    tracking_client: Any = store.client._tracking_client  # noqa: SLF001 - it alone has the store
    return engine_of(tracking_client.store)


def engine_of(tracking_store: object) -> Engine | None:
    """The database that may be read past MLflow's own store of it: no other store, as one of workspaces, hides rows."""
    module: Any = sys.modules.get("mlflow.store.tracking.sqlalchemy_store")  # imported where there is one of its stores
    own = module is not None and type(tracking_store) is module.SqlAlchemyStore
    engine: Engine | None = getattr(tracking_store, "engine", None) if own else None
    return engine


def run_with_id(engine: Engine, run_id: str) -> Run | None:
    """One run, deleted or not; None where there is none, too."""
    runs = _read(engine, lambda: _with_id(run_id))
    return runs[0] if runs else None


def newest_runs(engine: Engine, wanted: NewestRuns) -> list[Run] | None:
    """The runs that are wanted, those that started last first."""
    return _read(engine, lambda: _newest(wanted))


def _with_id(run_id: str) -> Select[Any]:
    from sqlalchemy import column, select, table

    runs = table("runs", *map(column, _COLUMNS))
    return select(runs).where(runs.c.run_uuid == run_id)


def _newest(wanted: NewestRuns) -> Select[Any]:
    from sqlalchemy import column, select, table

    runs, tags = table("runs", *map(column, _COLUMNS)), table("tags", *map(column, ("run_uuid", "key", "value")))
    conditions = [
        tags.c.key == GOLDEN,
        runs.c.experiment_id.in_([int(each) for each in wanted.experiment_ids]),
        runs.c.lifecycle_stage == "active",
        *([] if wanted.golden is None else [tags.c.value == wanted.golden]),
        *([runs.c.status == "FINISHED"] if wanted.finished else []),
        *([] if wanted.until is None else [runs.c.start_time <= wanted.until]),
        *([] if wanted.since is None else [runs.c.start_time >= wanted.since]),
    ]
    chosen = select(runs).join(tags, tags.c.run_uuid == runs.c.run_uuid).where(*conditions)
    return chosen.order_by(runs.c.start_time.desc(), runs.c.run_uuid).limit(wanted.limit)


def _read(engine: Engine, statement: Callable[[], Select[Any]]) -> list[Run] | None:
    from sqlalchemy.exc import SQLAlchemyError

    try:
        with engine.connect() as connection:
            infos = connection.execute(statement()).fetchall()
            run_ids = [info.run_uuid for info in infos]
            values = {name: _values(connection, name, run_ids) for name in ("tags", "params", "latest_metrics")}
    except SQLAlchemyError:
        _log.info("MLflow's tables are not as expected; MLflow itself is asked", exc_info=True)
        return None
    return [_run(info, {name: rows.get(info.run_uuid, []) for name, rows in values.items()}) for info in infos]


def _values(connection: Connection, name: str, run_ids: Sequence[str]) -> dict[str, list[Any]]:
    """The rows of a table that are of some runs, by run."""
    from sqlalchemy import column, select, table

    more = ("is_nan", "timestamp", "step") if name == "latest_metrics" else ()
    values = table(name, *map(column, ("run_uuid", "key", "value", *more)))
    by_run: dict[str, list[Any]] = {}
    for start in range(0, len(run_ids), AT_ONCE):
        part = select(values).where(values.c.run_uuid.in_(run_ids[start : start + AT_ONCE]))
        for row in connection.execute(part).fetchall():
            by_run.setdefault(row[0], []).append(row)
    return by_run


def _run(info: Any, values: dict[str, Iterable[Any]]) -> Run:
    """A run as MLflow's own reading gives it, without its inputs and outputs."""
    from mlflow.entities import Metric, Param, Run, RunData, RunInfo, RunTag

    metrics = [
        Metric(key, nan if is_nan else value, timestamp, step)
        for _, key, value, is_nan, timestamp, step in values.get("latest_metrics", ())
    ]
    params = [Param(key, value) for _, key, value in values.get("params", ())]
    tags = [RunTag(key, value) for _, key, value in values["tags"]]
    name = info.name or next((tag.value for tag in tags if tag.key == "mlflow.runName"), None)
    return Run(
        RunInfo(
            run_id=info.run_uuid,
            experiment_id=str(info.experiment_id),
            user_id=info.user_id,
            status=info.status,
            start_time=info.start_time,
            end_time=info.end_time,
            lifecycle_stage=info.lifecycle_stage,
            artifact_uri=info.artifact_uri,
            run_name=name,
        ),
        RunData(metrics=metrics, params=params, tags=tags),
    )
