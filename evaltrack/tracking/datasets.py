"""Registers golden sets as MLflow's evaluation datasets, one per version, and reads datasets for an import."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from difflib import get_close_matches
from typing import Any

from evaltrack.errors import UsageError
from evaltrack.golden.lines import record_of
from evaltrack.records import Question
from evaltrack.tracking.mlflow_private import dataset_records_reader, tracing_client
from evaltrack.tracking.server_retries import few_retries, persist, reason
from evaltrack.tracking.store import Store, pages, tracking_errors

REGISTERED_QUESTIONS = 1000
"""The most questions of a golden set that is registered. So many take about a second, the first time."""

WHOLE = "evaltrack.whole"
"""The tag of a dataset that holds every question. A dataset that was left half written is filled again."""


def register_golden(
    store: Store, experiment_id: str, name: str, digest: str, questions: Iterable[Question], count: int
) -> str | None:
    """Register a golden set with an experiment, unless this version is registered or it is too large.

    A run does not need it: a failure is returned as a note and never raised.
    """
    if count > REGISTERED_QUESTIONS:
        return None
    try:
        with few_retries():
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
        datasets = list(client.search_datasets(*named_so))  # several if the reply to the first request was lost
    dataset = min(datasets, key=lambda each: (WHOLE not in (each.tags or {}), each.created_time, each.dataset_id))
    for other in datasets:
        own = other.tags or {}
        if other is not dataset and WHOLE not in own and tags.items() <= own.items():  # ours, and still empty
            client.delete_dataset(other.dataset_id)
    if WHOLE not in (dataset.tags or {}):
        tracing_client(store.client).store.upsert_dataset_records(dataset.dataset_id, _records(list(questions)))
        client.set_dataset_tags(dataset.dataset_id, {WHOLE: "true"})


def _records(questions: list[Question]) -> list[dict[str, Any]]:
    """Return records with the inputs of the traces: the text, the id if the text is repeated, and the history."""
    repeated = Counter(question.question for question in questions)
    records = []
    for each in questions:
        inputs: dict[str, Any] = {"question": each.question}
        inputs |= {"id": each.id} if repeated[each.question] > 1 else {}
        inputs |= {"history": each.messages[:-1]} if each.history else {}
        record = record_of(each)  # the source is HUMAN if something is expected, as in `merge_records`
        source: dict[str, Any] = {"source_type": "HUMAN" if record["expectations"] else "CODE", "source_data": {}}
        records.append({**record, "inputs": inputs, "source": source})
    return records


def dataset_records(store: Store, name: str) -> list[dict[str, Any]]:
    """Return the records of the dataset with a name or an id.

    Raises:
        UsageError: there is no such dataset, or there are several.
        TrackingError: the store does not answer, refuses, or has no datasets.
    """
    with tracking_errors(f"reading the dataset {name}"):
        client: Any = store.client
        found_pages = pages(lambda token: client.search_datasets(None, max_results=1000, page_token=token))
        datasets = [each for page in found_pages for each in page]
        found = [each for each in datasets if name in (each.name, each.dataset_id)]
        if len(found) != 1:
            raise _not_one(name, found, datasets)
        records, _ = persist(dataset_records_reader(store.client), found[0].dataset_id, max_results=None)
    return [
        {
            "inputs": each.inputs,
            "expectations": each.expectations,
            "tags": each.tags,
            "dataset_record_id": each.dataset_record_id,
        }
        for each in records
    ]


def _not_one(name: str, found: list[Any], datasets: list[Any]) -> UsageError:
    if found:
        ids = ", ".join(each.dataset_id for each in found)
        return UsageError(f"{len(found)} datasets are called `{name}`: {ids}; name one by its id")
    names = [each.name for each in datasets]
    near = get_close_matches(name, names, 5) or names[:5]
    cure = f"did you mean {' or '.join(f'`{each}`' for each in near)}?" if near else "the store has none"
    return UsageError(f"there is no dataset `{name}`; {cure}")
