"""The run that a program has open around an evaluation: ``with mlflow.start_run():``."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from evaltrack.tracking.store import Store, choose_experiment


@dataclass(frozen=True)
class OuterRun:
    """A run that the program opened and ends itself."""

    run_id: str
    experiment_id: str


def outer_run(store: Store, experiment: str | None) -> OuterRun | None:
    """The run that is open in this thread and in this store; None where another `experiment` is named than its own.

    Raises:
        TrackingError: the store refused.
    """
    mlflow = sys.modules.get("mlflow")
    active = mlflow.active_run() if mlflow else None
    if mlflow is None or active is None or mlflow.get_tracking_uri() != store.uri:
        return None
    outer = OuterRun(active.info.run_id, active.info.experiment_id)
    if experiment and choose_experiment(store, experiment).experiment_id != outer.experiment_id:
        return None
    return outer
