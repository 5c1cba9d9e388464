"""Open, resume and end the MLflow run of one evaluation."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from evaltrack.errors import TrackingError
from evaltrack.tracking.store import Store, choose_experiment, find_run, tracking_errors
from evaltrack.tracking.tags import user_name
from evaltrack.tracking.traces import forget_traces

if TYPE_CHECKING:
    from mlflow.entities import Param, Run, RunTag

SETTINGS = "settings.json"
JOURNAL_TAG = "evaltrack.journal"
GOLDEN_SET = "evaltrack.golden_set."
"""Start of an experiment's tags that name the golden sets evaluated in it."""

KEY_LIMIT, PARAM_LIMIT, TAG_LIMIT = 250, 6000, 8000

Status = Literal["FINISHED", "FAILED", "KILLED"]


@dataclass(frozen=True)
class OpenRun:
    """A run that is RUNNING and waits to be filled.

    Its metrics are logged at `step`, 0 but where a run that was broken off logged some before, which `held` names:
    MLflow shows those of the last step, whatever the clock says. `params` names the params it has.
    """

    run_id: str
    experiment_id: str
    step: int = 0
    resumed: bool = False
    held: frozenset[str] = frozenset()
    name: str = ""
    params: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Dataset:
    """What `mlflow.log_input` shows of a golden set."""

    name: str
    digest: str
    path: str
    questions: int


@dataclass(frozen=True)
class Description:
    """What a run says of its evaluation, whether it is opened or resumed; `tags` hold the name of its journal."""

    name: str
    params: Mapping[str, str]
    tags: Mapping[str, str]
    data: Dataset


def open_run(store: Store, experiment: str | None, told: Description) -> OpenRun:
    """The run to fill, with its params, tags and dataset logged: the one `mlflow run` opened, else a new one.

    Raises:
        TrackingError: the store refused.
    """
    given = os.environ.get("MLFLOW_RUN_ID")
    if given:
        run = find_run(store, given)
        if run.info.status != "RUNNING":
            raise TrackingError(f"MLflow run {given} (from MLFLOW_RUN_ID) is {run.info.status}; unset the variable")
    else:
        chosen = choose_experiment(store, experiment)
        with tracking_errors("creating a run"):
            from mlflow.tracking.context.registry import resolve_tags

            # in a container whose user has no name MLflow says nothing of who ran it; the journal's name is there
            # from the first moment, should we be killed
            own = {"mlflow.user": user_name(), **resolve_tags(), JOURNAL_TAG: told.tags[JOURNAL_TAG]}
            run = store.client.create_run(chosen.experiment_id, run_name=told.name, tags=own)
    try:
        _describe(store, run, told)
        with tracking_errors(f"logging {SETTINGS}"):  # before anything is asked: the store takes files
            store.client.log_dict(run.info.run_id, dict(told.params), SETTINGS)
    except BaseException:
        close_run(store, run.info.run_id, "FAILED")
        raise
    params = frozenset({*run.data.params, *told.params})
    return OpenRun(run.info.run_id, run.info.experiment_id, name=told.name, params=params)


def journal_tag(store: Store, run_id: str) -> str | None:
    """The name of the journal that a run carries.

    Raises:
        TrackingError: there is no such run, or it is deleted.
    """
    name: str | None = find_run(store, run_id).data.tags.get(JOURNAL_TAG)
    return name


def find_journaled(store: Store, journal: str) -> str | None:
    """The run that carries the name of a journal; None where there is none yet, or it is deleted.

    Raises:
        TrackingError: the store does not answer.
    """
    with tracking_errors("looking for a run that was broken off"):
        experiments = [each.experiment_id for each in store.client.search_experiments()]
        found = store.client.search_runs(experiments, f"tags.`{JOURNAL_TAG}` = '{journal}'", max_results=1)
    return found[0].info.run_id if found else None


def is_there(store: Store, run_id: str) -> bool:
    """Whether a run exists and is not deleted."""
    try:
        find_run(store, run_id)
    except TrackingError:
        return False
    return True


def reopen_run(store: Store, run_id: str, told: Description) -> OpenRun:
    """A run that was broken off, RUNNING again: what it lacks is logged, its traces are taken back.

    Raises:
        TrackingError: the store refused, or the run is gone.
    """
    run = find_run(store, run_id)
    info, logged = run.info, run.data
    missing = {name: value for name, value in told.params.items() if name not in logged.params}
    with tracking_errors("resuming the run"):
        store.client.update_run(run_id, status="RUNNING")
        store.client.log_batch(run_id, params=run_params(missing), tags=run_tags(told.tags))
        named = run.inputs.dataset_inputs if run.inputs else ()
        if not any(each.dataset.digest == told.data.digest[:36] for each in named):
            _log_dataset(store, run_id, told.data)
        earlier = store.client.get_metric_history(run_id, "num_questions")
    forget_traces(store, info.experiment_id, run_id)
    step = 1 + max((metric.step for metric in earlier), default=-1)
    return OpenRun(
        run_id,
        info.experiment_id,
        step,
        resumed=True,
        held=frozenset(logged.metrics),
        name=info.run_name or told.name,
        params=frozenset({*logged.params, *told.params}),
    )


def run_params(params: Mapping[str, str]) -> list[Param]:
    """Params as MLflow takes them, cut at its limit."""
    from mlflow.entities import Param

    return [Param(key, value[:PARAM_LIMIT]) for key, value in params.items()]


def run_tags(tags: Mapping[str, str]) -> list[RunTag]:
    """Tags as MLflow takes them, cut at its limit."""
    from mlflow.entities import RunTag

    return [RunTag(key, value[:TAG_LIMIT]) for key, value in tags.items()]


def _log_dataset(store: Store, run_id: str, data: Dataset) -> None:
    from mlflow.entities import Dataset as MlflowDataset
    from mlflow.entities import DatasetInput, InputTag

    dataset = MlflowDataset(
        name=data.name,
        digest=data.digest[:36],
        source_type="local",
        source=json.dumps({"uri": data.path}),
        profile=json.dumps({"num_questions": data.questions}),
    )
    store.client.log_inputs(run_id, [DatasetInput(dataset, [InputTag("mlflow.data.context", "evaluation")])])


def _describe(store: Store, run: Run, told: Description) -> None:
    run_id, logged = run.info.run_id, run.data.params
    own = {
        (f"evaltrack.{key}" if key in logged else key): value
        for key, value in told.params.items()
        if logged.get(key) != value
    }
    with tracking_errors("logging params and tags"):
        store.client.log_batch(
            run_id,
            params=run_params(own),
            tags=run_tags({**told.tags, "mlflow.runName": told.name}),
        )
        _log_dataset(store, run_id, told.data)
    _name_golden_set(store, run.info.experiment_id, told.data.name)


def _name_golden_set(store: Store, experiment_id: str, golden: str) -> None:
    """Let the experiment name the golden set, so that finding it takes no look at its runs; a run does without it."""
    name = GOLDEN_SET + golden
    if len(name) <= KEY_LIMIT:
        with suppress(TrackingError), tracking_errors("naming the golden set"):
            store.client.set_experiment_tag(experiment_id, name, "evaluated")


def close_run(store: Store, run_id: str, status: Status) -> None:
    """End the run; a store that cannot even do that is reported by what failed before."""
    with tracking_errors(f"ending the run as {status}"):
        store.client.set_terminated(run_id, status=status)
