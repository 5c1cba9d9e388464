"""The two sides of a comparison, as MLflow holds them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from evaltrack.compare.deltas import GROUP_METRICS
from evaltrack.compare.pairing import ALWAYS, LIGHT_COLUMNS, MAIN_SCORES, SECONDS, Side
from evaltrack.compare.run_info import RunInfo
from evaltrack.compare.side_columns import SideColumns, frame_of, numbers
from evaltrack.errors import TrackingError
from evaltrack.metrics.catalogue import BY_METRIC
from evaltrack.rows.columns import own_scores_of, schema
from evaltrack.rows.reader import check_rows, read_columns, read_groups, slim_rows, stored_rows
from evaltrack.rows.rows_error import damaged, rows_of_run
from evaltrack.rows.stored_row import StoredRow
from evaltrack.tracking.reader import EvaluationRun
from evaltrack.tracking.run_files import fetch_rows
from evaltrack.tracking.store import Store
from evaltrack.tracking.stored_rows import TRIALS

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

    def rows(ids: Collection[str]) -> Mapping[str, StoredRow]:
        with whose():
            return {row.id: row for row in stored_rows(path, ids=ids)} if ids else {}

    def slim(ids: Collection[str]) -> Mapping[str, StoredRow]:
        with whose():
            return {row.id: row for row in slim_rows(path, ids)} if ids else {}

    def brief(ids: Collection[str]) -> Iterator[StoredRow]:
        with whose():
            yield from _brief(path, ids, own)

    def tables(names: Sequence[str]) -> Iterator[pa.Table]:
        with whose():
            yield from read_groups(path, names)

    with whose():
        check_rows(path, info.num_questions, ALWAYS)
        columns = SideColumns(tables, light)
        if name := other_mean(columns.frame, info.means):
            raise damaged(path.name, f"the mean of its rows is not the run's {name}")
    return Side(info, columns.frame, columns.ids, columns.fingerprint, rows, slim, brief)


def columns_of_run(store: Store, run: EvaluationRun, folder: Path) -> pd.DataFrame:
    """The light columns of a run alone, without what a comparison of two needs besides.

    Raises:
        TrackingError: its rows are not there, or they are damaged.
    """
    local = folder / run.run_id
    local.mkdir(exist_ok=True)
    path, info = fetch_rows(store, run, local), info_of_run(store, run)
    with rows_of_run(run.run_id):
        check_rows(path, info.num_questions, ALWAYS)
        own = [score.name for score in own_scores_of(info.signature)]
        frame = frame_of([read_columns(path, [*LIGHT_COLUMNS, *own])])
        if name := other_mean(frame, info.means):
            raise damaged(path.name, f"the mean of its rows is not the run's {name}")
    return frame


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


BRIEF_COLUMNS = [
    *("id", "question", "answer", "expected_answer", "expected", "by_title", "by_passage"),
    *("domain", "difficulty", "category", "passed", "error"),
    *MAIN_SCORES,
    *("trials", "passes", "history"),
    *(f"sources.list.element.{name}" for name in ("chunk_id", "title", "url", "score", "finds")),
]


def _brief(path: Path, ids: Collection[str], own: Sequence[str]) -> Iterator[StoredRow]:
    """The rows with these ids without the texts of their sources; nothing is read behind the last of them."""
    return islice(stored_rows(path, [*BRIEF_COLUMNS, *own], ids), len(ids))


def side_of_rows(info: RunInfo, rows: Sequence[StoredRow], table: pa.Table | None = None) -> Side:
    """Rows held in memory as one side; `table` holds the same, where there is one."""
    import pyarrow as pa

    by_id = {row.id: row for row in rows}
    own = tuple(score.name for score in own_scores_of(info.signature))
    whole = table or pa.Table.from_pylist([row.columns() for row in rows], schema=schema(own))
    columns = SideColumns(lambda _: [whole], [*LIGHT_COLUMNS, *own])
    return Side(
        info,
        columns.frame,
        columns.ids,
        columns.fingerprint,
        rows=lambda ids: {key: by_id[key] for key in ids if key in by_id},
        slim=lambda ids: {key: by_id[key].without_texts() for key in ids if key in by_id},
        brief=lambda ids: [row.without_texts() for row in rows if row.id in ids],
    )
