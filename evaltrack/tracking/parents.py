"""The run above those of several golden sets: it holds no evaluation, but a summary and the names of its children."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import uuid4

from evaltrack.tracking.active_run import outer_run
from evaltrack.tracking.read_back import Expected, write_until_held
from evaltrack.tracking.runs import JOURNAL_TAG, OpenRun, Status, as_logged, close_run, given_run, new_run, run_tags
from evaltrack.tracking.store import Store, choose_experiment

KIND_TAG, KIND = "evaltrack.kind", "golden sets"
CHILDREN_TAG = "evaltrack.children"


def open_parent(store: Store, experiment: str, name: str) -> OpenRun:
    """The parent of the runs to come: the run `mlflow run` opened, else a new one.

    Raises:
        TrackingError: the store refused.
    """
    journal = uuid4().hex  # it has none; by this name a run is found whose creation was not confirmed
    tags = {KIND_TAG: KIND, JOURNAL_TAG: journal}
    given = given_run(store)
    if given is not None:
        return OpenRun(given.info.run_id, given.info.experiment_id, name=name, journal=journal)
    outer = outer_run(store, experiment)
    experiment_id = outer.experiment_id if outer else choose_experiment(store, experiment).experiment_id
    below = {"mlflow.parentRunId": outer.run_id} if outer else {}
    run = new_run(store, experiment_id, name, {**tags, **below})
    return OpenRun(run.info.run_id, run.info.experiment_id, name=name, journal=journal)


def end_parent(store: Store, parent: OpenRun, status: Status, children: Sequence[str], note: str) -> None:
    """Note which runs are below it and what they came to, and end it.

    Raises:
        TrackingError: the store refused, or does not hold what was written.
    """
    own = {KIND_TAG: KIND, CHILDREN_TAG: ",".join(children)}
    tags = {**own, "mlflow.note.content": note, "mlflow.runName": parent.name}
    held = Expected("RUNNING", tags=as_logged(tags))
    log = store.client.log_batch
    write_until_held(
        store, parent.run_id, "describing the parent run", lambda: log(parent.run_id, tags=run_tags(tags)), held
    )
    close_run(store, parent, status)
