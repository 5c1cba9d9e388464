"""Read an evaluation back out of its MLflow run."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

from evaltrack.errors import TrackingError
from evaltrack.table import FlatRow, read_table
from evaltrack.tracking.store import Store, tracking_errors
from evaltrack.tracking.writer import ROWS


def read_rows(store: Store, run_id: str, columns: list[str] | None = None) -> Iterator[FlatRow]:
    """The rows of a run in the order of its golden set, streamed from its Parquet artifact.

    Raises:
        TrackingError: the run or its rows are not there.
    """
    with tempfile.TemporaryDirectory(prefix="evaltrack-") as folder:
        with tracking_errors(f"reading {ROWS} of run {run_id}"):
            path = store.client.download_artifacts(run_id, ROWS, folder)
        if not Path(path).is_file():
            raise TrackingError(f"MLflow run {run_id} holds no {ROWS}; is it an evaluation of evaltrack?")
        yield from read_table(Path(path), columns)
