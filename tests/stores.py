"""Stores that are made once and copied, where each test wants one of its own with the same runs."""

from __future__ import annotations

import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

from mlflow import MlflowClient
from mlflow.tracking._tracking_service.utils import _artifact_repos_cache

PLACES = (
    ("runs", "artifact_uri"),
    ("experiments", "artifact_location"),
    ("trace_tags", "value"),
    ("trace_request_metadata", "value"),
)
"""Where MLflow writes down paths."""


def copy_store(source: Path, folder: Path) -> None:
    shutil.copytree(source, folder, dirs_exist_ok=True)
    with closing(sqlite3.connect(folder / "mlflow.db")) as database, database:
        for table, column in PLACES:
            database.execute(f"update {table} set {column} = replace({column}, ?, ?)", (f"{source}/", f"{folder}/"))
    _artifact_repos_cache.clear()  # MLflow remembers where the artifacts of each run were


def trace_counts(uri: str, run_id: str, experiment_id: str = "0") -> tuple[int, int, int]:
    """The numbers of traces of a run, of their spans and of their assessments."""
    filters = {"filter_string": f"metadata.`mlflow.sourceRun` = '{run_id}'", "max_results": 500}
    traces = MlflowClient(uri).search_traces(locations=[experiment_id], **filters)
    spans = [span for trace in traces for span in trace.data.spans]
    return len(traces), len(spans), sum(len(trace.info.assessments) for trace in traces)
