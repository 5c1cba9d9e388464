"""The runs of a sweep: its parent, and which child holds which configuration."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from evaltrack.errors import UsageError
from evaltrack.tracking.parents import KIND_TAG, runs_below
from evaltrack.tracking.runs import JOURNAL_TAG, OpenRun, run_metrics, run_tags
from evaltrack.tracking.store import Store, find_run, search_runs, tracking_errors

SWEEP_TAG = "evaltrack.sweep"
"""Of the parent: the digest of its configurations."""

CONFIGURATION_TAG = "evaltrack.sweep.configuration"
"""Of a child: the digest of what it evaluates."""


@dataclass(frozen=True)
class Child:
    """A run below a sweep, and how it stands."""

    run_id: str
    status: str


def find_children(store: Store, parent: OpenRun) -> dict[str, Child]:
    """The runs below a sweep by the digest of their configuration; of several the newest that is FINISHED, or any.

    Raises:
        TrackingError: the store does not answer.
    """
    runs = runs_below(store, parent.experiment_id, parent.run_id)
    runs.sort(key=lambda run: run.info.status == "FINISHED")  # stable: the last of a kind is the newest
    tagged = ((run.data.tags.get(CONFIGURATION_TAG), run.info) for run in runs)
    return {digest: Child(info.run_id, info.status) for digest, info in tagged if digest}


def find_unfinished(store: Store, experiment_id: str, digest: str) -> str | None:
    """The newest sweep of these configurations that was broken off; None where there is none.

    Raises:
        TrackingError: the store does not answer.
    """
    wanted = f"tags.`{SWEEP_TAG}` = '{digest}' AND attributes.status != 'FINISHED'"
    runs = search_runs(store, "looking for a sweep that was broken off", [experiment_id], wanted, 1)
    return runs[0].info.run_id if runs else None


def reopen_sweep(store: Store, run_id: str, digest: str, name: str) -> OpenRun:
    """A sweep that was broken off or extended, RUNNING again.

    Raises:
        UsageError: the run is none of a sweep.
        TrackingError: the store refused.
    """
    run = find_run(store, run_id)
    if run.data.tags.get(KIND_TAG) != "sweep":
        raise UsageError(f"MLflow run {run_id} is none of a sweep; name the parent run, or `resume=auto`")
    with tracking_errors("resuming the sweep"):
        store.client.update_run(run_id, status="RUNNING")
        store.client.log_batch(run_id, tags=run_tags({SWEEP_TAG: digest}))
    journal = run.data.tags.get(JOURNAL_TAG, "")
    return OpenRun(run_id, run.info.experiment_id, resumed=True, name=run.info.run_name or name, journal=journal)


def end_child(store: Store, run_id: str) -> None:
    """End a run that was broken off and cannot be gone on with.

    Raises:
        TrackingError: the store refused.
    """
    with tracking_errors("ending a run that was broken off"):
        store.client.set_terminated(run_id, status="KILLED")


def log_metrics(store: Store, run_id: str, metrics: Mapping[str, float]) -> None:
    """Log metrics to a run of a sweep, which may have ended.

    Raises:
        TrackingError: the store refused.
    """
    with tracking_errors("logging the leaderboard"):
        store.client.log_batch(run_id, metrics=run_metrics(metrics))


def log_texts(store: Store, run_id: str, texts: Iterable[tuple[str, str]]) -> None:
    """Log texts as artifacts, by their paths.

    Raises:
        TrackingError: the store refused.
    """
    with tracking_errors("logging the leaderboard"):
        for path, text in texts:
            store.client.log_text(run_id, text, path)
