"""Reads the records of one of MLflow's evaluation datasets, by name or id, for an import."""

from __future__ import annotations

from typing import Any

from evaltrack.errors import UsageError
from evaltrack.records.config import did_you_mean
from evaltrack.tracking.mlflow_private import dataset_records_reader
from evaltrack.tracking.server_retries import persist
from evaltrack.tracking.store import Store, pages, tracking_errors


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
    cure = did_you_mean(name, [each.name for each in datasets]) if datasets else "the store has none"
    return UsageError(f"there is no dataset `{name}`; {cure}")
