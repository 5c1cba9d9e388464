"""The two sides of a comparison, as MLflow holds them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from evaltrack.compare.deltas import GROUP_METRICS
from evaltrack.compare.pairing import ALWAYS, LIGHT_COLUMNS, SECONDS, Side, numbers, side_frame
from evaltrack.compare.run_info import RunInfo
from evaltrack.errors import TrackingError
from evaltrack.metrics.catalogue import BY_METRIC
from evaltrack.rows.columns import own_scores_of, schema
from evaltrack.rows.reader import check_rows, read_groups, slim_rows, stored_rows
from evaltrack.rows.stored_row import StoredRow, damaged, rows_of_run
from evaltrack.tracking.reader import EvaluationRun, fetch_rows
from evaltrack.tracking.store import Store
from evaltrack.tracking.tags import TRIALS

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa


def side_of_run(store: Store, run: EvaluationRun, folder: Path) -> Side:
    """A run as one side; its rows are downloaded into `folder`, which must stay until the comparison is done.

    Raises:
        TrackingError: its rows are not there.
    """
    local = folder / run.run_id
    local.mkdir(exist_ok=True)
    side = side_of_table(info_of_run(store, run), fetch_rows(store, run, local))
    return replace(side, trials=partial(_trials, store, run, local))


def _trials(store: Store, run: EvaluationRun, folder: Path, ids: Collection[str]) -> Mapping[str, list[StoredRow]]:
    """The trials of questions; none where their file is gone or damaged: the rows hold the scores without it."""
    trials: dict[str, list[StoredRow]] = {}
    with suppress(TrackingError):
        path = fetch_rows(store, run, folder, TRIALS)
        check_rows(path, by_trial=True)
        for row in stored_rows(path, ids=ids):
            trials.setdefault(row.id, []).append(row.without_texts())
        return trials
    return {}


def info_of_run(store: Store, run: EvaluationRun) -> RunInfo:
    """What a comparison shows of a run."""
    return RunInfo(
        run_id=run.run_id,
        name=run.name,
        signature=run.signature,
        link=store.run_link(run.experiment_id, run.run_id),
        num_questions=run.num_questions,
        num_errors=run.num_errors,
        traces=run.traces,
        trace_link=store.trace_link(run.experiment_id, run.run_id),
        means={name: value for name, value in run.means.items() if name in GROUP_METRICS},
        settings=run.settings,
    )


def side_of_table(info: RunInfo, path: Path) -> Side:
    """The rows in a Parquet file as one side; the file must stay until the comparison is done.

    Raises:
        TrackingError: the file is damaged, was not written by evaltrack, or lacks rows that the run says it holds.
    """
    whose = partial(rows_of_run, info.run_id)
    own = [score.name for score in own_scores_of(info.signature)]
    light = [*LIGHT_COLUMNS, *own]
    if info.signature.target.startswith("recorded:"):
        light.remove(SECONDS)  # that of reading what was recorded is none of an answer

    def rows(ids: Collection[str], with_texts: bool) -> Mapping[str, StoredRow]:
        with whose():
            read = stored_rows(path, ids=ids) if with_texts else slim_rows(path, ids)
            return {row.id: row for row in read} if ids else {}

    def tables(names: Sequence[str]) -> Iterator[pa.Table]:
        with whose():
            yield from read_groups(path, names)

    with whose():
        check_rows(path, info.num_questions, ALWAYS)
        frame = side_frame(tables, light)
        if name := other_mean(frame, info.means):
            raise damaged(path.name, f"the mean of its rows is not the run's {name}")
    return Side(info, frame, rows)


SAME_MEAN = 1e-6
"""Means of the same values that differ by less are the same."""


def other_mean(frame: pd.DataFrame, means: Mapping[str, float]) -> str | None:
    """The first of these metrics that is not the mean of its column; None where all are."""
    import numpy as np

    for name, value in means.items():
        column = BY_METRIC[name].name
        if column not in frame:
            return name
        values = numbers(frame[column])
        measured = values[~np.isnan(values)]
        if not len(measured) or not abs(measured.mean() - value) <= SAME_MEAN:
            return name
    return None


def side_of_rows(info: RunInfo, rows: Sequence[StoredRow], table: pa.Table | None = None) -> Side:
    """Rows held in memory as one side; `table` holds the same, where there is one."""
    import pyarrow as pa

    by_id = {row.id: row for row in rows}
    own = tuple(score.name for score in own_scores_of(info.signature))
    whole = table or pa.Table.from_pylist([row.columns() for row in rows], schema=schema(own))
    frame = side_frame(lambda _: [whole], [*LIGHT_COLUMNS, *own])

    def rows_of(ids: Collection[str], with_texts: bool) -> Mapping[str, StoredRow]:
        return {key: by_id[key] if with_texts else by_id[key].without_texts() for key in ids if key in by_id}

    return Side(info, frame, rows_of)
