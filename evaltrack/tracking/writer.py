"""Logs the rows, table, summary, traces and metrics of an evaluation to its MLflow run, and checks that they arrived.

Rows stream to a local Parquet file. At the end, file, table, metrics, traces and description are logged. The traces
are read back.
"""

from __future__ import annotations

import itertools
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Literal

from evaltrack.errors import TrackingError
from evaltrack.records.json_text import finite_json
from evaltrack.records.row import Row, Traced
from evaltrack.tracking.artifacts import Artifacts
from evaltrack.tracking.rows import TableWriter, columns_of, read_table, stored_rows
from evaltrack.tracking.runs import OpenRun, run_metrics, run_params, run_tags
from evaltrack.tracking.store import Store, find_run, tracking_errors
from evaltrack.tracking.tags import ROWS, TRACES_TAG, TRIALS, metric_name
from evaltrack.tracking.traces import check_traces, has_trace, write_traces

TABLE = "per_question.json"
SUMMARY = "summary.json"
REPORT = "report.html"
OUTCOMES = "outcomes.json"
TABLE_ROWS = 5_000
"""The most rows for which MLflow's artifact view gets a JSON table. It is five times the size of the Parquet file."""

TRACED_QUESTIONS = 200
"""The most questions that all get a trace. Of a larger set only failed questions get one."""

TraceChoice = Literal["auto", "all", "failed", "off"]
OnProgress = Callable[[str, int, int], object]
"""Receives the progress of logging: a phrase, the amount done, and the total (0 if unknown)."""


class RunWriter:
    """Takes rows as they finish and logs them at the end. Use as a context manager: it owns a temporary folder.

    `several_trials`: each question is asked several times. `own` names the user's own scores.
    `traces` chooses the questions that get a trace.
    """

    def __init__(
        self,
        store: Store,
        run: OpenRun,
        several_trials: bool = False,
        own: tuple[str, ...] = (),
        traces: TraceChoice = "auto",
    ) -> None:
        self._traces, self._own = traces, own
        self._store, self._run = store, run
        self._run_id, self._experiment_id = run.run_id, run.experiment_id
        self.artifacts = Artifacts(store, run.run_id)
        self._made = tempfile.TemporaryDirectory(prefix="evaltrack-", ignore_cleanup_errors=True)
        self._file, self._trials_file = (Path(self._made.name) / name for name in (ROWS, TRIALS))
        with self._disk_errors():
            self._table = TableWriter(self._file, own)
            self._trials = TableWriter(self._trials_file, own) if several_trials else None

    def __enter__(self) -> RunWriter:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._made.cleanup()

    @contextmanager
    def _disk_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            cure = "make room, or set TMPDIR to another folder"
            raise TrackingError(f"temporary folder {self._made.name}: {error.strerror or error}; {cure}") from error

    def add(self, row: Row) -> None:
        """Add one finished question.

        Raises:
            TrackingError: the temporary folder is full.
        """
        with self._disk_errors():
            self._table.add(row)

    def add_trial(self, row: Row) -> None:
        """Add one trial of a question, if there are several."""
        if self._trials is not None:
            with self._disk_errors():
                self._trials.add(row)

    def rows(self, columns: Sequence[str] | None = None, ids: Collection[str] | None = None) -> Iterator[Row]:
        """Return the written rows, in order, or only those of `ids`. Call after `log_rows`."""
        return stored_rows(self._file, columns, ids)

    def plain_rows(self, columns: Sequence[str]) -> Iterator[dict[str, Any]]:
        """Return some columns of the written rows, in order, as stored. Call after `log_rows`."""
        return read_table(self._file, columns)

    def log_rows(self, on_progress: OnProgress) -> None:
        """Log rows and table.

        Raises:
            TrackingError: the store refused.
        """
        with self._disk_errors():
            self._table.close()
            if self._trials is not None:
                self._trials.close()
        on_progress("logging the rows", 0, 0)
        if self._trials is not None:
            self.artifacts.log(self._trials_file)
        self.artifacts.log(self._file)
        if 0 < self._table.rows <= TABLE_ROWS:
            local = self._file.with_name(TABLE)
            local.write_text(table_json(table_of(list(self.rows()), self._own)), encoding="utf-8")
            self.artifacts.log_table(local)

    def log_summary(
        self,
        metrics: Mapping[str, float],
        summary: dict[str, Any],
        note: str,
        tags: Mapping[str, str],
        params: Mapping[str, str],
    ) -> None:
        """Log the final metrics and tags in one call, `summary.json` and the description.

        `params` are those that were not known at the start.

        Raises:
            TrackingError: the store refused.
        """
        described = run_tags({**tags, TRACES_TAG: self.traced, "mlflow.note.content": note})
        stored = find_run(self._store, self._run_id).data.metrics if self._run.resumed else {}
        changed = {name: value for name, value in metrics.items() if stored.get(metric_name(name)) != value}
        with tracking_errors("logging the metrics"):
            self._store.client.log_batch(
                self._run_id, metrics=run_metrics(changed), tags=described, params=run_params(params)
            )
        self.log_text(SUMMARY, [json.dumps(summary, indent=2)])

    def log_text(self, path: str, pieces: Iterable[str]) -> None:
        """Log a text as the artifact `path`, streamed through a file.

        Raises:
            TrackingError: the store refused.
        """
        with self._disk_errors():
            local = Path(self._made.name) / "texts" / path
            local.parent.mkdir(parents=True, exist_ok=True)
            with local.open("w", encoding="utf-8") as file:
                file.writelines(pieces)
        self.artifacts.log(local, path.rpartition("/")[0])

    @property
    def traced(self) -> Traced:
        """The questions that get a trace. Known after `log_rows`."""
        if self._store.is_folder:
            return "off"
        if self._traces == "auto":
            return "all" if self._table.rows <= TRACED_QUESTIONS else "failed"
        return self._traces

    def log_traces(self, on_progress: OnProgress, is_stopped: Callable[[], bool] = lambda: False) -> None:
        """Write the chosen traces, and compare their count with the store's. Call after `log_rows`.

        Raises:
            TrackingError: the store refused, or does not hold what was written.
        """
        total, traced = self._table.rows, self.traced
        if traced == "off":
            return
        times_asked = Counter(row.question for row in self.rows(["id", "question"]))
        repeated = {text for text, times in times_asked.items() if times > 1}
        chosen_rows = (row for row in self.rows() if has_trace(traced, row))
        rows = itertools.takewhile(lambda _: not is_stopped(), chosen_rows)
        place = (self._store, self._experiment_id, self._run_id)
        sent = write_traces(
            *place,
            rows,
            repeated,
            lambda done: on_progress("writing traces", done, total),
        )
        check_traces(*place, sent)


def table_of(rows: Sequence[Row], own: tuple[str, ...] = ()) -> dict[str, list[Any]]:
    """Return the rows as MLflow's table shows them: a list per column, lists and sources as short text.

    Columns without a value are left out.
    """
    judges = sorted({verdict.judge for row in rows for verdict in row.verdicts})
    shown: dict[str, Callable[[Row], Any]] = {
        "question": lambda row: row.question,
        "answer": lambda row: row.answer,
        "id": lambda row: row.id,
        "result": lambda row: row.outcome,
        "expected": lambda row: ", ".join(row.expected or ()),
        "retrieved": lambda row: ", ".join(map(row.name_of, row.sources or ())),
        "history": lambda row: "\n".join(f"{turn.role}: {turn.content}" for turn in row.history) or None,
        **{f"judge_score: {judge}": partial(_judge_score, judge) for judge in judges if len(judges) > 1},
        "reasoning": lambda row: "\n".join(verdict.reasoning for verdict in row.verdicts),
    }
    table = {name: [value(row) for row in rows] for name, value in shown.items()}
    columns = [columns_of(row, own) for row in rows]
    others = [name for name in columns[0] if name not in _SHOWN_OTHERWISE]
    table |= {name: [_cell(each[name]) for each in columns] for name in others}
    return {
        name: values for name, values in table.items() if name in _FIRST or any(each is not None for each in values)
    }


def _cell(value: Any) -> Any:
    """Return the value as a cell: lists and objects as JSON texts, empty ones as None."""
    return (finite_json(value) if value else None) if isinstance(value, list | dict) else value


def table_json(table: Mapping[str, Sequence[Any]]) -> str:
    """Return the table in the form that MLflow's artifact view reads."""
    return finite_json({"columns": list(table), "data": list(zip(*table.values(), strict=True))})


def _judge_score(judge: str, row: Row) -> float | None:
    return next((each.overall_score for each in row.verdicts if each.judge == judge), None)


_FIRST = ("question", "answer")
"""MLflow's view of the table groups rows by the first column, and compares the second."""

_SHOWN_OTHERWISE = frozenset(
    {
        *("id", "question", "answer", "passed", "pass", "expected", "by_title", "sources", "verdicts", "history", "k"),
        *("tool_calls", "started_at", "position", "trace_id", "root_span_id"),
    }
)
