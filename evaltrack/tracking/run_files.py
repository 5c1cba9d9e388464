"""The files of a run: its rows, trials and summary, fetched and read."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evaltrack.errors import TrackingError
from evaltrack.rows.reader import check_rows, read_table, stored_rows
from evaltrack.rows.stored_row import StoredRow, rows_of_run
from evaltrack.tracking.reader import EvaluationRun, find_evaluation
from evaltrack.tracking.store import Store, tracking_errors
from evaltrack.tracking.tags import ROWS, RowsFile, check_logged
from evaltrack.tracking.writer import SUMMARY


def fetch_rows(store: Store, run: EvaluationRun, folder: Path, name: RowsFile = ROWS) -> Path:
    """Download the rows of a run, or those of its single trials; they are those that it logged, where it says which.

    Raises:
        TrackingError: the run or its rows are not there, or they were changed.
    """
    path = _download(store, run.run_id, name, folder)
    check_logged(path, name, run.run_id, run.rows_tag)
    return path


def _download(store: Store, run_id: str, name: str, folder: Path) -> Path:
    """An artifact as a file; one that is not there is told from a store that does not answer."""
    try:
        with tracking_errors(f"reading {name} of run {run_id}"):
            path = store.download(run_id, name, folder)
    except TrackingError:
        names = _artifacts(store, run_id)
        if names is None or name in names:
            raise
        raise TrackingError(_gone_words(name, run_id, some_left=bool(names))) from None
    if not path.is_file():
        raise TrackingError(f"{name} of run {run_id} is a folder; restore the file, or evaluate again")
    return path


def _gone_words(name: str, run_id: str, *, some_left: bool) -> str:
    if some_left:
        return f"{name} of run {run_id} is gone, its other artifacts are there; restore it, or evaluate again"
    problem = f"{name} of run {run_id} is not there, nor is any other of its artifacts"
    return f"{problem}; make their folder available on this machine, restore it, or evaluate again"


def _artifacts(store: Store, run_id: str) -> set[str] | None:
    """The names of a run's artifacts; None where the store does not say."""
    try:
        with tracking_errors(f"listing the artifacts of run {run_id}"):
            return {each.path for each in store.client.list_artifacts(run_id)}
    except TrackingError:
        return None


def read_rows(
    store: Store, run: EvaluationRun, columns: list[str] | None = None, ids: Collection[str] | None = None
) -> Iterator[StoredRow]:
    """The rows of a run in the order of its golden set, or those of `ids`, streamed from its Parquet artifact.

    Raises:
        TrackingError: the run or its rows are not there, or they are damaged.
    """
    with _checked_rows(store, run) as path:
        yield from stored_rows(path, columns, ids)


def read_run_table(store: Store, run: EvaluationRun) -> Iterator[dict[str, Any]]:
    """All rows of a run as `read_rows` gives them, each as a dictionary of its columns.

    Raises:
        TrackingError: the run or its rows are not there, or they are damaged.
    """
    with _checked_rows(store, run) as path:
        yield from read_table(path)


def read_table_of(store: Store, run_id: str) -> Iterator[dict[str, Any]]:
    """As `read_run_table`, of the run with this id, which is looked up when its rows are read.

    Raises:
        TrackingError: the run or its rows are not there, or they are damaged.
    """
    yield from read_run_table(store, find_evaluation(store, run_id))


@contextmanager
def _checked_rows(store: Store, run: EvaluationRun) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="evaltrack-") as folder, rows_of_run(run.run_id):
        path = fetch_rows(store, run, Path(folder))
        check_rows(path, run.num_questions)
        yield path


def fetch_summary(store: Store, run_id: str, folder: Path) -> Path:
    """Download the summary of a run into `folder`.

    Raises:
        TrackingError: the run does not hold it.
    """
    return _download(store, run_id, SUMMARY, folder)
