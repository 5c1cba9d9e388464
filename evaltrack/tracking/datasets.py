"""The golden set among MLflow's evaluation datasets, where its pages show and edit questions; once for each version."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from evaltrack.golden.exchange.mlflow_records import record_of
from evaltrack.records import Question
from evaltrack.tracking.dataset_records import as_written
from evaltrack.tracking.patience import impatient
from evaltrack.tracking.replies import reason
from evaltrack.tracking.store import Store

REGISTERED_QUESTIONS = 1000
"""Questions up to which a golden set is registered: that many take about a second, the first time."""

WHOLE = "evaltrack.whole"
"""Tag of a dataset that holds every question: one that a kill left half written is filled again."""


def register_golden(
    store: Store, experiment_id: str, name: str, digest: str, questions: Iterable[Question], count: int
) -> str | None:
    """Register a golden set with an experiment, unless this version of it is there, or it is too large.

    A run does without it: what goes wrong comes back as a note, never as an error.
    """
    if count > REGISTERED_QUESTIONS:
        return None
    try:
        with impatient():
            _register(store, experiment_id, f"{name} {digest[:12]}", {"evaltrack.golden": name}, questions)
    except Exception as error:  # noqa: BLE001 - stores differ in what they lack and how they say so
        return f"the golden set is not among MLflow's datasets: {reason(error)}"
    return None


def _register(store: Store, experiment_id: str, name: str, tags: dict[str, str], questions: Iterable[Question]) -> None:
    client: Any = store.client
    quoted = name.replace("'", "_")
    named_so = ([experiment_id], f"name = '{quoted}'")
    datasets = list(client.search_datasets(*named_so))
    if not datasets:
        client.create_dataset(quoted, [experiment_id], tags)
        datasets = list(client.search_datasets(*named_so))  # several, where the reply to the first request was lost
    dataset = min(datasets, key=lambda each: (WHOLE not in (each.tags or {}), each.created_time, each.dataset_id))
    for other in datasets:
        if other is not dataset and _is_half_made(other.tags or {}, tags):
            client.delete_dataset(other.dataset_id)
    if WHOLE not in (dataset.tags or {}):
        # the public `merge_records` writes to the process's own tracking URI, whichever store the dataset is of
        inner = client._tracking_client.store  # noqa: SLF001
        inner.upsert_dataset_records(dataset.dataset_id, _records(list(questions)))
        client.set_dataset_tags(dataset.dataset_id, {WHOLE: "true"})


def _is_half_made(tags: dict[str, str], own: dict[str, str]) -> bool:
    """Whether a dataset is one that evaltrack created, and that is still empty."""
    return own.items() <= tags.items() and WHOLE not in tags


def _records(questions: list[Question]) -> list[dict[str, Any]]:
    """Inputs as those of the traces: the text, with the id where it stands there more than once, and the history."""
    repeated = Counter(question.question for question in questions)
    return [
        as_written(
            record_of(
                each,
                {"question": each.question}
                | ({"id": each.id} if repeated[each.question] > 1 else {})
                | ({"history": each.messages[:-1]} if each.history else {}),
            )
        )
        for each in questions
    ]
