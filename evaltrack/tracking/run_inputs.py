"""The golden set of a run as MLflow's input of that run."""

from __future__ import annotations

import json
from dataclasses import dataclass

from evaltrack.system import retries
from evaltrack.tracking.store import Store

AT_ONCE = ("unique constraint", "duplicate", "integrityerror")
"""Words of a database that another run has just named the same dataset; MLflow looks for it first, without a lock."""


@dataclass(frozen=True)
class Dataset:
    """What `mlflow.log_input` shows of a golden set."""

    name: str
    digest: str
    path: str
    questions: int


def log_dataset(store: Store, run_id: str, data: Dataset) -> None:
    """Name the golden set as the input of a run; again where runs that began at the same moment name it first.

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
        return isinstance(error, MlflowException) and any(words in str(error).lower() for words in AT_ONCE)

    retries.NAMED_AT_ONCE.call(lambda: store.client.log_inputs(run_id, inputs), was_named_at_once)
