"""The last runs of many golden sets, read from the server's own database in a few queries of what is shown of them.

MLflow's search reads all metrics, params, tags, inputs and models of each run: seconds for the first page, where there
are a thousand. Where the store is no database with MLflow's tables of today the answer is None, and its search is to be
asked.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import nan
from typing import TYPE_CHECKING, Any

from evaltrack.metrics.catalogue import HEADLINES
from evaltrack.records.past_run import PastRun
from evaltrack.tracking.history import GOLDEN, SHOWN_TAGS, past_run_of
from evaltrack.tracking.metric_names import ALWAYS, logged_name
from evaltrack.tracking.server_tables import database_of
from evaltrack.tracking.store import Store

if TYPE_CHECKING:
    from sqlalchemy import Connection, Select

MOST = 20_000
"""Runs that are read in all: where there are so many, some may be left out."""

_METRICS = sorted(
    {name for score in HEADLINES for name in (logged_name(score.metric), f"n/{score.metric}")} | set(ALWAYS)
)
"""The metrics that are read: the headlines and their counts."""

_log = logging.getLogger(__name__)


_COLUMNS = ("run_uuid", "name", "start_time", "status", "user_id", "experiment_id")


@dataclass(frozen=True)
class _Info:
    """A run as its own table has it."""

    run_id: str
    run_name: str | None
    start_time: int | None
    status: str
    user_id: str | None
    experiment_id: str


def _info(row: Any) -> _Info:
    return _Info(row.run_uuid, row.name, row.start_time, row.status, row.user_id, str(row.experiment_id))


def last_runs(
    store: Store, experiment_ids: Sequence[str], golden_sets: Sequence[str], each: int
) -> dict[tuple[str, str], list[PastRun]] | None:
    """The `each` runs of golden sets that started last, newest first, by experiment and golden set.

    At most `MOST` in all; None where the store cannot be read so.
    """
    runs = _read(store, lambda: _last_of_each(_of_experiments(experiment_ids), golden_sets, each))
    if runs is None:
        return None
    sets: dict[tuple[str, str], list[PastRun]] = {}
    for golden, run in runs:
        sets.setdefault((run.experiment_id, golden), []).append(run)
    return sets


def last_evaluations(store: Store, experiment_ids: Sequence[str], limit: int) -> list[PastRun] | None:
    """The evaluations of some experiments that started last, newest first; None where the store cannot be read so."""
    runs = _read(store, lambda: _newest_first(_of_experiments(experiment_ids)).limit(limit))
    return None if runs is None else [run for _, run in runs]


def runs_with_ids(store: Store, run_ids: Sequence[str]) -> dict[str, PastRun] | None:
    """Those of some runs that are not deleted, by id; None where the store cannot be read so."""
    runs = _read(store, lambda: _with_ids(run_ids)) if run_ids else []
    return None if runs is None else {run.run_id: run for _, run in runs}


def _read(store: Store, statement: Callable[[], Select[Any]]) -> list[tuple[str, PastRun]] | None:
    """The runs that a statement selects, in its order, each with its golden set."""
    engine = database_of(store)
    if engine is None:
        return None
    from sqlalchemy.exc import SQLAlchemyError

    try:
        with engine.connect() as connection:
            chosen = statement()
            infos = list(map(_info, connection.execute(chosen).fetchall()))
            tags = _values(connection, "tags", SHOWN_TAGS, chosen)
            metrics = _values(connection, "latest_metrics", _METRICS, chosen)
    except SQLAlchemyError:
        _log.info("MLflow's tables are not as expected; its search is asked", exc_info=True)
        return None
    own = ((info, tags.get(info.run_id, {})) for info in infos)
    return [(each.get(GOLDEN, ""), past_run_of(info, each, metrics.get(info.run_id, {}))) for info, each in own]


def _evaluations() -> Select[Any]:
    """The active runs with the tag of a golden set."""
    from sqlalchemy import column, select, table

    runs = table("runs", *map(column, (*_COLUMNS, "lifecycle_stage")))
    tags = table("tags", *map(column, ("run_uuid", "key", "value")))
    columns = (*(runs.c[name] for name in _COLUMNS), tags.c.value.label("golden"))
    joined = select(*columns).join(tags, tags.c.run_uuid == runs.c.run_uuid)
    return joined.where(tags.c.key == GOLDEN, runs.c.lifecycle_stage == "active")


def _of_experiments(experiment_ids: Sequence[str]) -> Select[Any]:
    evaluations = _evaluations()
    return evaluations.where(evaluations.selected_columns.experiment_id.in_([int(each) for each in experiment_ids]))


def _with_ids(run_ids: Sequence[str]) -> Select[Any]:
    evaluations = _evaluations()
    return _newest_first(evaluations.where(evaluations.selected_columns.run_uuid.in_(run_ids)))


def _last_of_each(evaluations: Select[Any], golden_sets: Sequence[str], each: int) -> Select[Any]:
    """The first `each` of every golden set."""
    from sqlalchemy import func, select

    runs = evaluations.selected_columns
    newest = (runs.start_time.desc(), runs.run_uuid)
    place = func.row_number().over(partition_by=(runs.experiment_id, runs.golden), order_by=newest).label("place")
    placed = evaluations.add_columns(place).where(runs.golden.in_(golden_sets)).subquery("placed")
    columns = [placed.c[name] for name in _COLUMNS]
    first = select(*columns).where(placed.c.place <= each)
    return first.order_by(placed.c.start_time.desc(), placed.c.run_uuid).limit(MOST)


def _newest_first(evaluations: Select[Any]) -> Select[Any]:
    runs = evaluations.selected_columns
    shown = evaluations.with_only_columns(*(runs[name] for name in _COLUMNS), maintain_column_froms=True)
    return shown.order_by(runs.start_time.desc(), runs.run_uuid)


def _values(connection: Connection, name: str, keys: Sequence[str], runs: Select[Any]) -> dict[str, dict[str, Any]]:
    """The tags or the metrics of runs, as far as they are shown: by run and key, in one query for all runs."""
    from sqlalchemy import column, select, table

    is_metric = name == "latest_metrics"
    values = table(name, *map(column, ("run_uuid", "key", "value", *(("is_nan",) if is_metric else ()))))
    chosen = runs.subquery("chosen")
    own = select(values).join(chosen, chosen.c.run_uuid == values.c.run_uuid).where(values.c.key.in_(keys))
    by_run: dict[str, dict[str, Any]] = {}
    for run_id, key, value, *is_nan in connection.execute(own).fetchall():
        by_run.setdefault(run_id, {})[key] = nan if is_nan == [True] else value
    return by_run
