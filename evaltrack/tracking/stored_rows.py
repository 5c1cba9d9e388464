"""What a run says of its files of rows, and whether those that come back are the ones it logged."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Final, Literal

from evaltrack.errors import TrackingError
from evaltrack.records.base import Count, Record
from evaltrack.rows.columns import ROWS_VERSION
from evaltrack.rows.stored_row import CURE, RowsError, newer
from evaltrack.tracking.tags import read_tag

ROWS: Final = "per_question.parquet"
TRIALS: Final = "trials.parquet"
ROWS_TAG = "evaltrack.rows"

RowsFile = Literal["per_question.parquet", "trials.parquet"]


class RowsTag(Record):
    """The tag `evaltrack.rows`: version of the columns, number of rows, and the SHA-256 of each file.

    `trials_sha256` is empty where every question was asked once.
    """

    version: int
    rows: Count
    sha256: str
    trials_sha256: str = ""


def rows_tag(rows: int, file: Path, trials: Path | None) -> dict[str, str]:
    """The tag of a run that logs these files."""
    tag = RowsTag(
        version=ROWS_VERSION, rows=rows, sha256=file_digest(file), trials_sha256=file_digest(trials) if trials else ""
    )
    return {ROWS_TAG: tag.model_dump_json()}


def file_digest(path: Path) -> str:
    """SHA-256 of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_logged(path: Path, name: RowsFile, run_id: str, tag: str) -> None:
    """Refuse a downloaded file that is not the one that the run logged; a run without the tag says nothing of it.

    Raises:
        TrackingError: it is another, or a newer version wrote it, or the tag says nothing.
    """
    if not tag:
        return
    logged = _read(name, run_id, tag)
    digest = logged.sha256 if name == ROWS else logged.trials_sha256
    if (actual := file_digest(path)) != digest:
        problem = f"was changed after the run: its SHA-256 is {actual[:12]}…, and tag `{ROWS_TAG}` says {digest[:12]}…"
        raise RowsError(name, problem, CURE, run_id)


def _read(name: str, run_id: str, tag: str) -> RowsTag:
    try:
        version = json.loads(tag)["version"]
    except (ValueError, KeyError, TypeError, RecursionError):
        version = None
    if type(version) is int and version > ROWS_VERSION:
        raise newer(name, version, run_id)
    logged = read_tag(RowsTag, tag)
    if logged is None:
        cure = "evaluate again, or delete the tag, so that the file is checked without it"
        raise TrackingError(f"tag `{ROWS_TAG}` of run {run_id} was not written by evaltrack; {cure}")
    return logged
