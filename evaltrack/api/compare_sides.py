"""The two sides of a comparison, as MLflow holds them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from evaltrack.compare.pairing import ALWAYS, GROUP_METRICS, LIGHT_COLUMNS, SECONDS, Side, numbers, side_frame
from evaltrack.errors import TrackingError
from evaltrack.metrics.catalogue import BY_METRIC, own_scores_of
from evaltrack.records.run import Run
from evaltrack.records.stored_row import StoredRow, compared_columns
from evaltrack.tracking.reader import fetch_rows
from evaltrack.tracking.rows import columns_of, damaged, file_schema, rows_of_run
from evaltrack.tracking.rows_reader import check_rows, read_groups, slim_rows, stored_rows
from evaltrack.tracking.store import Store
from evaltrack.tracking.tags import TRIALS

if TYPE_CHECKING:
    import pandas as pd


def side_of_run(store: Store, run: Run, folder: Path) -> Side:
    """A run as one side; its rows are downloaded into `folder`, which must stay until the comparison is done.

    Raises:
        TrackingError: its rows are not there.
    """
    local = folder / run.run_id
    local.mkdir(exist_ok=True)
    side = side_of_table(run, fetch_rows(store, run, local))
    return replace(side, trials=partial(_trials, store, run, local))


def _trials(store: Store, run: Run, folder: Path, ids: Collection[str]) -> Mapping[str, list[StoredRow]]:
    """The trials of questions; none where their file is gone or damaged: the rows hold the scores without it."""
    trials: dict[str, list[StoredRow]] = {}
    with suppress(TrackingError):
        path = fetch_rows(store, run, folder, TRIALS)
        check_rows(path, by_trial=True)
        for row in stored_rows(path, ids=ids):
            trials.setdefault(row.id, []).append(row.without_texts())
        return trials
    return {}


def side_of_table(info: Run, path: Path) -> Side:
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

    with whose():
        check_rows(path, info.num_questions, ALWAYS)
        frame = side_frame(read_groups(path, light))
        if name := other_mean(frame, info.means):
            raise damaged(path.name, f"the mean of its rows is not the run's {name}")
    return Side(info, frame, rows)


SAME_MEAN = 1e-6
"""Means of the same values that differ by less are the same."""


def other_mean(frame: pd.DataFrame, means: Mapping[str, float]) -> str | None:
    """The first of the main metrics whose mean is not that of its column; None where all are."""
    import numpy as np

    for name in (each for each in GROUP_METRICS if each in means):
        column = BY_METRIC[name].name
        if column not in frame:
            return name
        values = numbers(frame[column])
        measured = values[~np.isnan(values)]
        if not len(measured) or not abs(measured.mean() - means[name]) <= SAME_MEAN:
            return name
    return None


def side_of_rows(info: Run, rows: Sequence[StoredRow]) -> Side:
    """Rows held in memory as one side."""
    import pyarrow as pa

    by_id = {row.id: row for row in rows}
    own = tuple(score.name for score in own_scores_of(info.signature))
    columns = [columns_of(row) | compared_columns(row) for row in rows]
    table = pa.Table.from_pylist(columns, schema=file_schema(own)).select([*LIGHT_COLUMNS, *own])

    def rows_of(ids: Collection[str], with_texts: bool) -> Mapping[str, StoredRow]:
        return {key: by_id[key] if with_texts else by_id[key].without_texts() for key in ids if key in by_id}

    return Side(info, side_frame([table]), rows_of)
