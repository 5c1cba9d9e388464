"""The parent run of a sweep: a new one, or that of a sweep that was broken off."""

from __future__ import annotations

import os

from evaltrack.errors import UsageError
from evaltrack.evaluation.resume import AUTO, is_resumable
from evaltrack.evaluation.sweep_plan import SweepPlan
from evaltrack.privacy.addresses import shown_text
from evaltrack.tracking.naming import resolve_run
from evaltrack.tracking.parents import open_parent
from evaltrack.tracking.runs import OpenRun
from evaltrack.tracking.store import Store, choose_experiment, find_run
from evaltrack.tracking.sweeps import SWEEP_TAG, find_children, find_unfinished, reopen_sweep


def choose_parent(plan: SweepPlan, store: Store, resume: str | None) -> tuple[OpenRun, str | None]:
    """The parent to fill, and a hint for the user.

    Raises:
        UsageError: `resume` names a run that is no sweep, or one that holds none of these configurations.
        TrackingError: the store refused.
    """
    under_mlflow = bool(os.environ.get("MLFLOW_RUN_ID"))
    if resume and under_mlflow:
        raise UsageError("`resume=`: `mlflow run` has opened a new run; resume with: evaltrack sweep FILE --resume RUN")
    if resume and resume != AUTO:
        return _resumed(plan, store, resolve_run(store, resume)), None
    settings = plan.configurations[0].settings
    broken = None
    if not under_mlflow:
        experiment = choose_experiment(store, settings.experiment).experiment_id
        broken = find_unfinished(store, experiment, plan.digest)
    if broken and resume:
        return _resumed(plan, store, broken), None
    hint = f"sweep {broken} of the same file was broken off; --resume auto goes on with it" if broken else None
    if resume:
        hint = "no sweep of these configurations was broken off: this is a new one, and asks each of them"
    return open_parent(store, settings.experiment, shown_text(plan.name), "sweep", {SWEEP_TAG: plan.digest}), hint


def _resumed(plan: SweepPlan, store: Store, run_id: str) -> OpenRun:
    """A sweep to go on with: at least one of its runs is of these configurations, or it has none yet.

    Raises:
        UsageError: it is another sweep, or another process is at work on it.
    """
    info = find_run(store, run_id).info
    children = find_children(store, OpenRun(run_id, info.experiment_id))
    if children and not children.keys() & set(plan.digests):
        why = "its configurations, their golden set or the version of evaltrack are others"
        raise UsageError(f"run {run_id} is another sweep: {why}. Start a new one, without `resume=`")
    for each in children.values():
        if each.status == "RUNNING":
            is_resumable(each.run_id, store)  # raises where another process is at work on it
    return reopen_sweep(store, run_id, plan.digest, plan.name)
