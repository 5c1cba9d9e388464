"""Opens, reopens and ends the parent run of golden sets or a sweep, finds its child runs, and logs the leaderboard."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal
from uuid import uuid4

from evaltrack.errors import UsageError
from evaltrack.tracking.runs import (
    JOURNAL_TAG,
    OpenRun,
    Status,
    close_run,
    new_run,
    outer_run,
    project_run,
    run_metrics,
    run_tags,
)
from evaltrack.tracking.store import Store, choose_experiment, find_run, search_runs, tracking_errors

if TYPE_CHECKING:
    from mlflow.entities import Run

Kind = Literal["golden sets", "sweep"]

KIND_TAG = "evaltrack.kind"
PARENT_TAG = "mlflow.parentRunId"

CONFIGURATION_TAG = "evaltrack.sweep.configuration"
"""A tag of a child: the digest of its configuration."""

MOST_CHILDREN = 1000


def open_parent(store: Store, experiment: str, name: str, kind: Kind, tags: Mapping[str, str] | None = None) -> OpenRun:
    """Return the parent for new runs: the run that `mlflow run` opened, else a new one, with these tags.

    Raises:
        TrackingError: the store refused.
    """
    journal = uuid4().hex  # a name without a journal, to find the run if its creation is not confirmed
    run = project_run(store)
    if run is None:
        outer = outer_run(store, experiment)
        experiment_id = outer.experiment_id if outer else choose_experiment(store, experiment).experiment_id
        below = {PARENT_TAG: outer.run_id} if outer else {}
        run = new_run(store, experiment_id, name, {JOURNAL_TAG: journal, **below})
    parent = OpenRun(run.info.run_id, run.info.experiment_id, name=name, journal=journal)
    tag_parent(store, parent, {**(tags or {}), KIND_TAG: kind})
    return parent


def runs_below(store: Store, experiment_id: str, parent_id: str) -> list[Run]:
    """Return the first `MOST_CHILDREN` child runs in the order of their start.

    Raises:
        TrackingError: the store does not answer.
    """
    doing, wanted = "looking for the runs below another", f"tags.`{PARENT_TAG}` = '{parent_id}'"
    return search_runs(store, doing, [experiment_id], wanted, MOST_CHILDREN, "attributes.start_time ASC")


def tag_parent(store: Store, parent: OpenRun, tags: Mapping[str, str]) -> None:
    """Write tags to a parent that is RUNNING.

    Raises:
        TrackingError: the store refused.
    """
    with tracking_errors("describing the parent run"):
        store.client.log_batch(parent.run_id, tags=run_tags(tags))


def end_parent(store: Store, parent: OpenRun, status: Status, note: str) -> None:
    """Write a note on the results of the child runs, and end the parent.

    Raises:
        TrackingError: the store refused.
    """
    tag_parent(store, parent, {"mlflow.note.content": note, "mlflow.runName": parent.name})
    close_run(store, parent, status)


def find_children(store: Store, parent: OpenRun) -> dict[str, tuple[str, str]]:
    """Return id and status of the runs of a sweep, by the digest of their configuration.

    It is the newest FINISHED run, else the newest.

    Raises:
        TrackingError: the store does not answer.
    """
    runs = runs_below(store, parent.experiment_id, parent.run_id)
    runs.sort(key=lambda run: run.info.status == "FINISHED")  # stable: the last of a kind is the newest
    tagged = ((run.data.tags.get(CONFIGURATION_TAG), run.info) for run in runs)
    return {digest: (info.run_id, info.status) for digest, info in tagged if digest}


def reopen_sweep(store: Store, run_id: str, name: str) -> OpenRun:
    """Set an interrupted or extended sweep to RUNNING again.

    Raises:
        UsageError: the run is not that of a sweep.
        TrackingError: the store refused.
    """
    run = find_run(store, run_id)
    if run.data.tags.get(KIND_TAG) != "sweep":
        raise UsageError(f"MLflow run {run_id} is not a sweep; name the parent run")
    with tracking_errors("resuming the sweep"):
        store.client.update_run(run_id, status="RUNNING")
    journal = run.data.tags.get(JOURNAL_TAG, "")
    return OpenRun(run_id, run.info.experiment_id, resumed=True, name=run.info.run_name or name, journal=journal)


def end_child(store: Store, run_id: str) -> None:
    """End an interrupted run that cannot be resumed.

    Raises:
        TrackingError: the store refused.
    """
    with tracking_errors("ending an interrupted run"):
        store.client.set_terminated(run_id, status="KILLED")


def log_leaderboard(store: Store, run_id: str, metrics: Mapping[str, float], texts: Mapping[str, str] = {}) -> None:
    """Log metrics, and texts by their artifact paths, to a run of a sweep, which may have ended.

    Raises:
        TrackingError: the store refused.
    """
    with tracking_errors("logging the leaderboard"):
        for path, text in texts.items():
            store.client.log_text(run_id, text, path)
        store.client.log_batch(run_id, metrics=run_metrics(metrics))
