"""Find evaluations among MLflow's runs, and read their rows back."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evaltrack.errors import TrackingError, UsageError
from evaltrack.records import Signature
from evaltrack.table import FlatRow, read_table
from evaltrack.tracking.runs import COMMAND
from evaltrack.tracking.store import Store, find_run, tracking_errors
from evaltrack.tracking.traces import TRACES_TAG, Traced
from evaltrack.tracking.writer import ROWS, SUMMARY


@dataclass(frozen=True)
class EvaluationRun:
    """An MLflow run that evaltrack wrote."""

    run_id: str
    experiment_id: str
    name: str
    status: str
    signature: Signature
    num_questions: int
    num_errors: int
    traces: Traced = "off"


def find_evaluation(store: Store, run_id: str) -> EvaluationRun:
    """The evaluation with this run id, ended or not.

    Raises:
        TrackingError: there is no such run, or it is deleted.
        UsageError: the run is not an evaluation of evaltrack.
    """
    run = find_run(store, run_id)
    text = run.data.tags.get("evaltrack.signature")
    if text is None:
        raise UsageError(f"MLflow run {run_id} is not an evaluation of evaltrack; see `evaltrack baseline list`")
    try:
        signature = Signature.model_validate_json(text)
    except ValidationError:
        raise UsageError(f"MLflow run {run_id} was written by another version of evaltrack; evaluate again") from None
    asked, failed = (int(run.data.metrics.get(name, 0)) for name in ("num_questions", "num_errors"))
    info = run.info
    named, told = info.run_name or info.run_id, run.data.tags.get(TRACES_TAG)
    traces: Traced = "all" if told == "all" else "failed" if told == "failed" else "off"
    return EvaluationRun(info.run_id, info.experiment_id, named, info.status, signature, asked, failed, traces)


def newest_evaluation(store: Store, experiment_id: str, golden: str | None, *, but: str = "") -> EvaluationRun | None:
    """The evaluation that ended last and is FINISHED, of one golden set or of any; `but` leaves one run out.

    Raises:
        TrackingError: the store does not answer.
    """
    wanted = f"tags.`evaltrack.golden` = '{quoted(golden)}'" if golden else "tags.`evaltrack.golden` LIKE '%'"
    with tracking_errors("looking for the newest run"):
        found = store.client.search_runs(
            [experiment_id],
            f"{wanted} AND attributes.status = 'FINISHED'",
            max_results=2,
            order_by=["attributes.end_time DESC"],
        )
    ids = [run.info.run_id for run in found if run.info.run_id != but]
    return find_evaluation(store, ids[0]) if ids else None


def quoted(text: str) -> str:
    """A text inside the single quotes of MLflow's filters, which know no escape for one."""
    if "'" in text:
        raise UsageError(f"golden set `{text}`: MLflow cannot search for a name with a single quote; rename the file")
    return text


def fetch_rows(store: Store, run_id: str, folder: Path) -> Path:
    """Download the rows of a run into `folder`.

    Raises:
        TrackingError: the run or its rows are not there.
    """
    with tracking_errors(f"reading {ROWS} of run {run_id}"):
        path = Path(store.client.download_artifacts(run_id, ROWS, str(folder)))
    if not path.is_file():
        raise TrackingError(f"MLflow run {run_id} holds no {ROWS}; was the artifact deleted? Evaluate again")
    return path


def read_rows(
    store: Store, run_id: str, columns: list[str] | None = None, ids: Collection[str] | None = None
) -> Iterator[FlatRow]:
    """The rows of a run in the order of its golden set, or those of `ids`, streamed from its Parquet artifact.

    Raises:
        TrackingError: the run or its rows are not there.
    """
    with tempfile.TemporaryDirectory(prefix="evaltrack-") as folder:
        yield from read_table(fetch_rows(store, run_id, Path(folder)), columns, ids)


def read_command(store: Store, run_id: str) -> dict[str, Any]:
    """What was asked for when the run was started.

    Raises:
        TrackingError: the run does not hold it.
    """
    return _read_object(store, run_id, COMMAND)


def read_summary(store: Store, run_id: str) -> dict[str, Any]:
    """Everything about a run but its rows, as it was when the run ended.

    Raises:
        TrackingError: the run does not hold it.
    """
    return _read_object(store, run_id, SUMMARY)


def _read_object(store: Store, run_id: str, name: str) -> dict[str, Any]:
    with tracking_errors(f"reading {name} of run {run_id}"), tempfile.TemporaryDirectory() as folder:
        content = Path(store.client.download_artifacts(run_id, name, folder)).read_bytes()
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        told = f"is damaged or of another version: {type(error).__name__}; evaluate again"
        raise TrackingError(f"{name} of run {run_id} {told}") from None
    if not isinstance(found, dict):
        raise TrackingError(f"{name} of run {run_id} is damaged or of another version: it holds no object")
    return found
