"""The run above several evaluations, of golden sets or of a sweep: no evaluation, but a summary of its children."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal
from uuid import uuid4

from evaltrack.tracking.read_back import Expected, write_until_held
from evaltrack.tracking.runs import (
    JOURNAL_TAG,
    OpenRun,
    Status,
    as_logged,
    close_run,
    given_run,
    new_run,
    outer_run,
    run_tags,
)
from evaltrack.tracking.store import Store, choose_experiment, search_runs

if TYPE_CHECKING:
    from mlflow.entities import Run

Kind = Literal["golden sets", "sweep"]

KIND_TAG = "evaltrack.kind"
CHILDREN_TAG = "evaltrack.children"
PARENT_TAG = "mlflow.parentRunId"

MOST_BELOW = 1000
"""Runs below a parent that are looked for."""


def open_parent(store: Store, experiment: str, name: str, kind: Kind, tags: Mapping[str, str] | None = None) -> OpenRun:
    """The parent of the runs to come: the run `mlflow run` opened, else a new one, with these tags.

    Raises:
        TrackingError: the store refused.
    """
    journal = uuid4().hex  # it has none; by this name a run is found whose creation was not confirmed
    own, given = {**(tags or {}), KIND_TAG: kind}, given_run(store)
    if given is None:
        outer = outer_run(store, experiment)
        experiment_id = outer.experiment_id if outer else choose_experiment(store, experiment).experiment_id
        below = {PARENT_TAG: outer.run_id} if outer else {}
        run = new_run(store, experiment_id, name, {**own, JOURNAL_TAG: journal, **below})
    parent = OpenRun((given or run).info.run_id, (given or run).info.experiment_id, name=name, journal=journal)
    if given is not None:
        tag_parent(store, parent, own)
    return parent


def runs_below(store: Store, experiment_id: str, parent_id: str) -> list[Run]:
    """The first `MOST_BELOW` runs below another, in the order in which they began.

    Raises:
        TrackingError: the store does not answer.
    """
    doing, wanted = "looking for the runs below another", f"tags.`{PARENT_TAG}` = '{parent_id}'"
    return search_runs(store, doing, [experiment_id], wanted, MOST_BELOW, "attributes.start_time ASC")


def tag_parent(store: Store, parent: OpenRun, tags: Mapping[str, str]) -> None:
    """Write tags to a parent that is RUNNING.

    Raises:
        TrackingError: the store refused, or does not hold what was written.
    """
    held = Expected("RUNNING", tags=as_logged(tags))
    log = store.client.log_batch
    write_until_held(
        store, parent.run_id, "describing the parent run", lambda: log(parent.run_id, tags=run_tags(tags)), held
    )


def name_children(store: Store, parent: OpenRun, children: Sequence[str]) -> None:
    """Note which runs are below it.

    Raises:
        TrackingError: the store refused, or does not hold what was written.
    """
    tag_parent(store, parent, {CHILDREN_TAG: ",".join(children)})


def end_parent(store: Store, parent: OpenRun, status: Status, children: Sequence[str], note: str, kind: Kind) -> None:
    """Note which runs are below it and what they came to, and end it.

    Raises:
        TrackingError: the store refused, or does not hold what was written.
    """
    own = {KIND_TAG: kind, CHILDREN_TAG: ",".join(children)}
    tag_parent(store, parent, {**own, "mlflow.note.content": note, "mlflow.runName": parent.name})
    close_run(store, parent, status)
