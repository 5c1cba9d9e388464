"""The experiment and the runs that a request names, once who asks may see them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NoReturn
from urllib.parse import urlencode

from flask import abort, g, request

from evaltrack.errors import TrackingError
from evaltrack.tracking.history import golden_sets_of
from evaltrack.tracking.reader import EvaluationRun, evaluation_of
from evaltrack.tracking.server_internals import Access, Action, Experiment, find_experiment, inside_store, prefixed
from evaltrack.tracking.store import Store, find_run, is_missing

LINKS = 10
"""Golden sets that are named where one is not there."""

Links = tuple[tuple[str, str], ...]
"""Words and addresses."""


def store_here() -> Store:
    """The server's own store."""
    return inside_store(request.url_root.rstrip("/") + prefixed("/"))


def experiment_of(access: Access, store: Store, experiment_id: str | None, action: Action = "read") -> Experiment:
    """The experiment that the request names, once this user may do that in it.

    The id must be written as MLflow writes it: `007` would be looked up as 7 but checked as another.
    """
    if not experiment_id or not re.fullmatch(r"0|[1-9][0-9]{0,17}", experiment_id):
        abort(400, "this address names no experiment")
    if not access.may(action, experiment_id):
        what = "read it" if action == "read" else "change its runs and baselines (EDIT)"
        abort(403, f"experiment {experiment_id}: you are not permitted to {what}; ask who manages it")
    experiment = find_experiment(store, experiment_id)
    if experiment is None:
        abort(404, f"there is no experiment {experiment_id}, or it is deleted")
    g.evaltrack_links = (_in_mlflow(experiment),)
    return experiment


def _in_mlflow(experiment: Experiment) -> tuple[str, str]:
    return f"Experiment {experiment.name} in MLflow", f"../#/experiments/{experiment.experiment_id}"


def other_sets(experiment: Experiment) -> Links:
    """Where to go on from a golden set that is not there: those that are."""
    names = sorted(golden_sets_of(experiment.tags))[:LINKS]
    sets = ((f"Golden set {name}", _address(experiment.experiment_id, name)) for name in names)
    return (*sets, _in_mlflow(experiment))


def evaluation_in(store: Store, experiment: Experiment, run_id: str | None) -> EvaluationRun:
    """The run that the request names; one of another experiment is as good as none."""
    if not run_id or not re.fullmatch(r"[A-Za-z0-9][\w-]{0,255}", run_id, re.ASCII):
        abort(400, "this address names no run")
    try:
        run = find_run(store, run_id)
    except TrackingError as error:
        if is_missing(error):
            _no_run(run_id)
        raise
    if run.info.experiment_id != experiment.experiment_id:  # before anything is said about it
        _no_run(run_id)
    return evaluation_of(run)


def check_end(run: EvaluationRun) -> EvaluationRun:
    """The run, which has ended."""
    if run.status in ("RUNNING", "SCHEDULED"):
        abort(409, f"run {run.name} is still {run.status}; its page comes when it has ended")
    return run


def subfolder(folder: Path, name: str) -> Path:
    """A folder for the files of one run."""
    own = folder / name
    own.mkdir(exist_ok=True)
    return own


def golden_address(run: EvaluationRun) -> str:
    """The page of the run's golden set."""
    return _address(run.experiment_id, run.signature.golden)


def _address(experiment_id: str, golden: str) -> str:
    return f"golden?{urlencode({'experiment_id': experiment_id, 'golden': golden})}"


def crumbs(experiment: Experiment, run: EvaluationRun) -> Links:
    """The way to the pages of a run."""
    return (
        ("MLflow", "../"),
        ("evaltrack", "./"),
        (experiment.name, f"../#/experiments/{experiment.experiment_id}"),
        (run.signature.golden, golden_address(run)),
    )


def run_links(store: Store, run: EvaluationRun) -> Links:
    """Where to go on when the page of a run cannot be shown."""
    return (
        (f"Runs and baseline of {run.signature.golden}", golden_address(run)),
        (f"Run {run.name} in MLflow", store.run_link(run.experiment_id, run.run_id) or ""),
    )


def _no_run(run_id: str) -> NoReturn:
    abort(404, f"there is no run {run_id} in this experiment, or it is deleted")
