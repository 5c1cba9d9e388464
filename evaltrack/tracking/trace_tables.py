"""Many traces in one transaction, where the store is a database that MLflow's own store opens in this process.

MLflow writes a trace in several transactions, each with queries of its own: ten times as long. The first trace is
written by MLflow; only where our rows of it are what its tables then hold, to the last column, the others are inserted.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from evaltrack.tracking.server_tables import engine_of
from evaltrack.tracking.trace_rows import NewTrace, Rows, TracePlacement

if TYPE_CHECKING:
    from sqlalchemy import Table

_log = logging.getLogger(__name__)

_TRACE_COLUMNS = ("request_id", "trace_id")
"""How MLflow's tables call the trace of a row."""


class TraceTables:
    """Writes the traces of one experiment; `by_mlflow` writes some through MLflow's own store."""

    def __init__(self, tracking_store: Any, experiment_id: str, by_mlflow: Callable[[list[NewTrace]], object]) -> None:
        self._store, self._experiment_id, self._by_mlflow = tracking_store, experiment_id, by_mlflow
        self._fits = None if engine_of(tracking_store) is not None and not _has_rollups() else False

    def write(self, traces: list[NewTrace]) -> None:
        """Write some traces.

        Raises:
            MlflowException: the store refused one.
        """
        new = [trace for trace in traces if not trace.is_joined]
        others = [trace for trace in traces if trace.is_joined]
        if self._fits is None and new:
            self._by_mlflow(new[:1])
            self._fits = self._holds(new.pop(0))
        if not self._fits or not self._insert(new):
            others = [*new, *others]
        if others:
            self._by_mlflow(others)

    def _insert(self, traces: list[NewTrace]) -> bool:
        """Whether all were inserted; none is where one of them is there already, as after a lost reply."""
        try:
            rows = self._rows(traces)
            with self._store.ManagedSessionMaker(read_only=False) as session:
                for table, values in rows.items():
                    if values:
                        session.execute(table.insert(), values)
        except Exception:  # noqa: BLE001 - MLflow's own way is left, and says what is wrong
            _log.info("traces cannot be inserted at once; MLflow itself writes them", exc_info=True)
            return False
        return True

    def _rows(self, traces: list[NewTrace]) -> Rows:
        from mlflow.entities import LifecycleStage

        experiment = self._store.get_experiment(self._experiment_id)
        if experiment.lifecycle_stage != LifecycleStage.ACTIVE:
            raise ValueError(f"experiment {self._experiment_id} is deleted")
        ascii_only = self._store.db_type == "mssql"
        return TracePlacement(int(self._experiment_id), experiment.artifact_location, ascii_only).rows_of(traces)

    def _holds(self, trace: NewTrace) -> bool:
        """Whether MLflow's tables hold of a trace what we would have written, and nothing else."""
        try:
            rows = self._rows([trace])
            with self._store.ManagedSessionMaker() as session:
                stored = {
                    table: session.execute(table.select().where(column == trace.info.trace_id)).mappings().all()
                    for table, column in _tables_of_traces(next(iter(rows)).metadata.tables.values())
                }
        except Exception:  # noqa: BLE001 - another MLflow, whose names or tables differ
            _log.info("MLflow's tables of traces are not as expected; MLflow itself writes them", exc_info=True)
            return False
        fits = all(_in_order(table, held) == _in_order(table, rows.get(table, ())) for table, held in stored.items())
        if not fits:
            _log.info("MLflow's tables of traces hold something else; MLflow itself writes them")
        return fits


def _has_rollups() -> bool:
    """Whether MLflow sums traces up by day, which each of its own writes announces."""
    from mlflow import environment_variables

    switch = getattr(environment_variables, "MLFLOW_SQL_TRACE_ROLLUPS_ENABLED", None)
    return switch is not None and bool(switch.get())


def _tables_of_traces(tables: Iterable[Table]) -> list[tuple[Table, Any]]:
    """The tables with rows of traces, and the column that names the trace."""
    return [(table, table.columns[name]) for table in tables for name in _TRACE_COLUMNS if name in table.columns]


def _in_order(table: Table, rows: Iterable[Any]) -> list[dict[str, Any]]:
    """Rows without what the database computes, in the order of their keys."""
    computed = {column.name for column in table.columns if column.computed is not None}
    keys = [column.name for column in table.primary_key.columns]
    plain = [{name: value for name, value in row.items() if name not in computed} for row in rows]
    return sorted(plain, key=lambda row: [str(row.get(key)) for key in keys])
