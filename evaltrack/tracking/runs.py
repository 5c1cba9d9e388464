"""Opens, resumes and ends the MLflow run of one evaluation, and logs its params, tags and dataset."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from evaltrack.errors import TrackingError
from evaltrack.records.row import milliseconds_now
from evaltrack.system import retries
from evaltrack.system.files import user_name
from evaltrack.tracking.artifacts import Artifacts
from evaltrack.tracking.server_retries import few_retries, has_wire
from evaltrack.tracking.store import Store, choose_experiment, find_run, tracking_errors
from evaltrack.tracking.tags import (
    GIT_COMMIT,
    caller_folder,
    context_tags,
    git_tags,
    logged_settings_of,
    metric_name,
    tag_part,
)
from evaltrack.tracking.traces import forget_traces

if TYPE_CHECKING:
    from mlflow.entities import Metric, Param, Run, RunInfo, RunTag


SETTINGS = "settings.json"
JOURNAL_TAG = "evaltrack.journal"
GOLDEN_SET = "evaltrack.golden_set."
"""The start of an experiment's tags that name the golden sets evaluated in it."""

PARAM_LIMIT, TAG_LIMIT = 6000, 8000

Status = Literal["FINISHED", "FAILED", "KILLED"]


NAMED_NOW = ("unique constraint", "duplicate", "integrityerror")
"""Words of a database error if another run has just created the same dataset. MLflow checks first, without a lock."""


@dataclass(frozen=True)
class Dataset:
    """A golden set as `mlflow.log_input` shows it."""

    name: str
    digest: str
    path: str
    questions: int


@dataclass(frozen=True)
class OpenRun:
    """A run that is RUNNING and not filled yet.

    `params` names its params. `journal` is the name of its journal. `settings` are the run's settings, with its commit.
    """

    run_id: str
    experiment_id: str
    resumed: bool = False
    name: str = ""
    params: frozenset[str] = frozenset()
    journal: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Place:
    """The place of one of several evaluations: their parent run, and the params and tags that identify it."""

    parent: OpenRun
    params: Mapping[str, str] = field(default_factory=dict)
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Description:
    """A run's description of its evaluation, for opening and resuming. `tags` include the name of its journal.

    `place` is set for one of several evaluations.
    """

    name: str
    params: Mapping[str, str]
    tags: Mapping[str, str]
    data: Dataset
    place: Place | None = None


def open_run(store: Store, experiment: str | None, description: Description) -> OpenRun:
    """Return the run to fill, with its params, tags and dataset logged.

    It is the run that `mlflow run` opened, else a new one. A new run is a child of the run that the program has open,
    if there is one.

    Raises:
        TrackingError: the store refused.
    """
    place = description.place
    run = None if place else project_run(store)
    if run is not None and GIT_COMMIT not in run.data.tags:
        description = replace(description, tags={**git_tags(caller_folder()), **description.tags})
    if run is None:
        parent = place.parent if place else outer_run(store, experiment)
        experiment_id = parent.experiment_id if parent else choose_experiment(store, experiment).experiment_id
        below = {**(place.tags if place else {}), **({"mlflow.parentRunId": parent.run_id} if parent else {})}
        own = {**below, JOURNAL_TAG: description.tags[JOURNAL_TAG]}  # set at creation, in case this process is killed
        run = new_run(store, experiment_id, description.name, own)
    opened = OpenRun(
        run.info.run_id,
        run.info.experiment_id,
        name=description.name,
        params=frozenset({*run.data.params, *description.params}),
        journal=description.tags[JOURNAL_TAG],
        settings=logged_settings_of({**run.data.params, **description.params}, {**run.data.tags, **description.tags}),
    )
    try:
        _describe(store, run, description)
        _log_settings(store, run.info.run_id, description)
    except BaseException:
        with suppress(TrackingError), few_retries():  # the earlier error says more
            close_run(store, opened, "FAILED")
        raise
    return opened


def _log_settings(store: Store, run_id: str, description: Description) -> None:
    """Log the params as an artifact. This checks that the store accepts files before the first question."""
    with tempfile.TemporaryDirectory(prefix="evaltrack-") as folder:
        local = Path(folder) / SETTINGS
        local.write_text(json.dumps(dict(description.params), indent=2), encoding="utf-8")
        artifacts = Artifacts(store, run_id)
        artifacts.log(local)
        artifacts.check()


def project_run(store: Store) -> Run | None:
    """Return the run that `mlflow run` opened for this process; None if it did not.

    Raises:
        TrackingError: it does not exist, or has ended.
    """
    run_id = os.environ.get("MLFLOW_RUN_ID")
    if not run_id:
        return None
    run = find_run(store, run_id)
    if run.info.status != "RUNNING":
        raise TrackingError(f"MLflow run {run_id} (from MLFLOW_RUN_ID) is {run.info.status}; unset the variable")
    return run


def outer_run(store: Store, experiment: str | None) -> RunInfo | None:
    """Return the run that a program has open in this thread and store, as by ``with mlflow.start_run():``.

    None if `experiment` names another experiment than the run's.

    Raises:
        TrackingError: the store refused.
    """
    mlflow = sys.modules.get("mlflow")
    active = mlflow.active_run() if mlflow else None
    if mlflow is None or active is None or mlflow.get_tracking_uri() != store.uri:
        return None
    outer: RunInfo = active.info
    if experiment and choose_experiment(store, experiment).experiment_id != outer.experiment_id:
        return None
    return outer


def new_run(store: Store, experiment_id: str, name: str, tags: Mapping[str, str]) -> Run:
    """Create a run. If every reply was lost, no run that may have been created is left RUNNING.

    Raises:
        TrackingError: the store refused.
    """
    try:
        with tracking_errors("creating a run"):
            # MLflow records no user in a container whose user has no name
            own = {"mlflow.user": user_name(), **context_tags(caller_folder()), **tags}
            run = store.client.create_run(experiment_id, run_name=name, tags=own)
    except BaseException:
        with suppress(TrackingError), few_retries():
            _end_strays(store, experiment_id, tags[JOURNAL_TAG])
        raise
    return run


def reopen_run(store: Store, run_id: str, description: Description) -> OpenRun:
    """Set an interrupted run to RUNNING again. Missing data is logged, and its traces are deleted.

    Raises:
        TrackingError: the store refused, or the run is gone.
    """
    run = find_run(store, run_id)
    info, logged = run.info, run.data
    missing = {name: value for name, value in description.params.items() if name not in logged.params}
    name = info.run_name or description.name
    with tracking_errors("resuming the run"):
        store.client.update_run(run_id, status="RUNNING")
    _describe(store, run, replace(description, name=name, params=missing))
    forget_traces(store, info.experiment_id, run_id)
    return OpenRun(
        run_id,
        info.experiment_id,
        resumed=True,
        name=name,
        params=frozenset({*logged.params, *description.params}),
        journal=description.tags[JOURNAL_TAG],
        settings=logged_settings_of({**description.params, **logged.params}, logged.tags),
    )


def run_metrics(metrics: Mapping[str, float]) -> list[Metric]:
    """Return metrics for MLflow, with the current time."""
    from mlflow.entities import Metric

    now = milliseconds_now()
    return [Metric(metric_name(name), value, now, 0) for name, value in metrics.items()]


def run_params(params: Mapping[str, str]) -> list[Param]:
    """Return params for MLflow, cut at its limit."""
    from mlflow.entities import Param

    return [Param(key, value[:PARAM_LIMIT]) for key, value in params.items()]


def run_tags(tags: Mapping[str, str]) -> list[RunTag]:
    """Return tags for MLflow, cut at its limit."""
    from mlflow.entities import RunTag

    return [RunTag(key, value[:TAG_LIMIT]) for key, value in tags.items()]


def _describe(store: Store, run: Run, description: Description) -> None:
    run_id, logged = run.info.run_id, run.data.params
    own = {
        (f"evaltrack.{key}" if key in logged else key): value
        for key, value in description.params.items()
        if logged.get(key) != value
    }
    tags = {**description.tags, "mlflow.runName": description.name}
    with tracking_errors("logging params and tags"):
        store.client.log_batch(run_id, params=run_params(own), tags=run_tags(tags))
        log_dataset(store, run_id, description.data)
    _name_golden_set(store, run.info.experiment_id, description.data.name)


def _name_golden_set(store: Store, experiment_id: str, golden: str) -> None:
    """Name the golden set in the experiment, so that it is found without reading runs. A failure is ignored."""
    with suppress(TrackingError), tracking_errors("naming the golden set"):
        store.client.set_experiment_tag(experiment_id, GOLDEN_SET + tag_part(golden), golden)


def log_dataset(store: Store, run_id: str, data: Dataset) -> None:
    """Name the golden set as the input of a run. Retry if runs that started at the same moment name it first.

    Raises:
        MlflowException: the store refused.
    """
    from mlflow.entities import Dataset as MlflowDataset
    from mlflow.entities import DatasetInput, InputTag
    from mlflow.exceptions import MlflowException

    dataset = MlflowDataset(
        name=data.name,
        digest=data.digest[:36],
        source_type="local",
        source=json.dumps({"uri": data.path}),
        profile=json.dumps({"num_questions": data.questions}),
    )
    inputs = [DatasetInput(dataset, [InputTag("mlflow.data.context", "evaluation")])]

    def was_named_at_once(error: BaseException) -> bool:
        return isinstance(error, MlflowException) and any(words in str(error).lower() for words in NAMED_NOW)

    retries.NAMED_AT_ONCE.call(lambda: store.client.log_inputs(run_id, inputs), was_named_at_once)


def close_run(store: Store, run: OpenRun, status: Status) -> None:
    """End the run. Runs that a lost reply left behind are removed by their journal's name.

    Raises:
        TrackingError: the store refused.
    """
    if has_wire(store.uri):
        _end_strays(store, run.experiment_id, run.journal, but=run.run_id)
    with tracking_errors(f"ending the run as {status}"):
        store.client.set_terminated(run.run_id, status=status)


def _end_strays(store: Store, experiment_id: str, journal: str, but: str = "") -> None:
    """End and delete the runs of an evaluation that were never filled, because the reply with their id was lost."""
    with tracking_errors("removing runs whose creation was not confirmed"):
        for run in store.client.search_runs([experiment_id], f"tags.`{JOURNAL_TAG}` = '{journal}'"):
            if run.info.run_id != but and run.info.status == "RUNNING" and not run.data.metrics:
                store.client.set_terminated(run.info.run_id, status="FAILED")
                store.client.delete_run(run.info.run_id)
