"""A run is linked to what it evaluated, where MLflow holds that: a model, or the traces of an application."""

from __future__ import annotations

from evaltrack.evaluation.plan import Plan
from evaltrack.records.response import TraceHome
from evaltrack.targets.models import ModelTarget
from evaltrack.targets.traces import TracedAnswers
from evaltrack.tracking.models import link_model
from evaltrack.tracking.past_traces import link_traces
from evaltrack.tracking.runs import OpenRun
from evaltrack.tracking.store import Store


def link_evaluated(plan: Plan, store: Store, run_id: str) -> str | None:
    """Link the model or the traces that were evaluated, where they are in the store of the run.

    A note where that fails.
    """
    target = plan.target
    if isinstance(target, ModelTarget) and target.store_uri == store.uri and target.form.model_id:
        return link_model(store, run_id, target.form.model_id)
    if not isinstance(target, TracedAnswers) or target.store_uri != store.uri or plan.traces != "off":
        return None
    return link_traces(store, run_id, target.used)


def trace_home(plan: Plan, store: Store, run: OpenRun) -> TraceHome:
    """Where the traces belong that the target makes in MLflow while it is evaluated."""
    is_folder = "://" not in store.uri or store.uri.startswith("file:")  # it refuses a trace that it holds already
    joins = plan.joins_traces and not is_folder
    return TraceHome(run_id=run.run_id, experiment_id=run.experiment_id, store=store.uri, joins=joins)
