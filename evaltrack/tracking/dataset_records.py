"""MLflow's evaluation datasets and their records: found, read and written.

MLflow's public functions for records work on the store of the process alone; these work on the store they are given.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from evaltrack.errors import UsageError
from evaltrack.golden.exchange.mlflow_records import DatasetRecord
from evaltrack.tracking.patience import persist
from evaltrack.tracking.store import Store, tracking_errors

BATCH = 500
"""Records that one request writes: MLflow takes about 1 ms for each, and a server's answer is waited for 30 s."""

PAGE = 1000
NAMES_SHOWN = 5


@dataclass(frozen=True)
class Dataset:
    """An evaluation dataset of an experiment."""

    dataset_id: str
    name: str


def find_dataset(store: Store, experiment_id: str, name: str) -> Dataset | None:
    """The dataset of an experiment with a name or an id; None where there is none.

    Raises:
        UsageError: there are several with this name.
        TrackingError: the store does not answer, refuses, or has no datasets.
    """
    datasets = [each for each in _datasets(store, [experiment_id]) if name in (each.name, each.dataset_id)]
    if len(datasets) > 1:
        ids = ", ".join(each.dataset_id for each in datasets)
        raise UsageError(f"{len(datasets)} datasets are called `{name}`: {ids}; name one by its id")
    return datasets[0] if datasets else None


def no_dataset(store: Store, experiment_id: str, name: str) -> UsageError:
    """The error for a dataset that is not there, with the names that come near.

    Raises:
        TrackingError: the store does not answer.
    """
    here = [each.name for each in _datasets(store, [experiment_id])]
    everywhere = [each.name for each in _datasets(store, None)]
    if near := difflib.get_close_matches(name, here, NAMES_SHOWN):
        cure = f"did you mean {' or '.join(f'`{each}`' for each in near)}?"
    elif name in everywhere:
        cure = "another experiment has one; name it with `experiment=`"
    elif here:
        cure = f"it has {', '.join(f'`{each}`' for each in here[:NAMES_SHOWN])}" + ", …" * (len(here) > NAMES_SHOWN)
    else:
        cure = "it has none; push a golden set first"
    return UsageError(f"there is no dataset `{name}` in the experiment; {cure}")


def create_dataset(store: Store, experiment_id: str, name: str) -> Dataset:
    """Create a dataset in an experiment.

    Raises:
        TrackingError: the store refused.
    """
    client: Any = store.client
    with tracking_errors(f"creating the dataset {name}"):
        made = client.create_dataset(name, [experiment_id], {"evaltrack.golden": name})
    return Dataset(made.dataset_id, made.name)


def read_records(store: Store, dataset: Dataset) -> list[DatasetRecord]:
    """All records of a dataset, in the order in which they were made.

    Raises:
        TrackingError: the store does not answer, or refuses.
    """
    with tracking_errors(f"reading the dataset {dataset.name}"):
        records, _ = persist(_inner(store)._load_dataset_records, dataset.dataset_id, max_results=None)  # noqa: SLF001
    return [
        DatasetRecord(each.inputs, each.expectations or {}, each.tags or {}, each.dataset_record_id, each.created_time)
        for each in records
    ]


def write_records(store: Store, dataset: Dataset, records: Sequence[DatasetRecord]) -> None:
    """Write records: those with inputs that are there are merged with them.

    Raises:
        TrackingError: the store refused.
    """
    with tracking_errors(f"writing to the dataset {dataset.name}"):
        for start in range(0, len(records), BATCH):
            part = [as_written(each) for each in records[start : start + BATCH]]
            persist(_inner(store).upsert_dataset_records, dataset.dataset_id, part)


def delete_records(store: Store, dataset: Dataset, keys: Sequence[str]) -> None:
    """Delete records by MLflow's ids of them.

    Raises:
        TrackingError: the store refused.
    """
    with tracking_errors(f"deleting records of the dataset {dataset.name}"):
        for start in range(0, len(keys), BATCH):
            persist(_inner(store).delete_dataset_records, dataset.dataset_id, list(keys[start : start + BATCH]))


def as_written(record: DatasetRecord) -> dict[str, Any]:
    """A record as MLflow's own `merge_records` writes it: its source is a person where something is expected."""
    source: dict[str, Any] = {"source_type": "HUMAN" if record.expectations else "CODE", "source_data": {}}
    return {
        "inputs": dict(record.inputs),
        "expectations": dict(record.expectations),
        "tags": dict(record.tags),
        "source": source,
    }


def _inner(store: Store) -> Any:
    client: Any = store.client
    return client._tracking_client.store  # noqa: SLF001 - the public functions take no store


def _datasets(store: Store, experiment_ids: list[str] | None) -> Iterator[Dataset]:
    client: Any = store.client
    token = None
    while True:
        with tracking_errors("looking for datasets"):
            page = client.search_datasets(experiment_ids, max_results=PAGE, page_token=token)
        yield from (Dataset(each.dataset_id, each.name) for each in page)
        if not (token := page.token):
            return
