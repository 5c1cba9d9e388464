"""The private names of MLflow: whether the installed version has them, and what is said where it has not."""

from __future__ import annotations

from importlib import import_module
from operator import attrgetter

import pytest
from mlflow import MlflowClient

from evaltrack.errors import TrackingError
from evaltrack.tracking import mlflow_private
from evaltrack.tracking.store import connect
from tests.files import data


@pytest.mark.filterwarnings("ignore:starlette.middleware.wsgi")  # MLflow imports what starlette drops
@pytest.mark.parametrize(("module", "name"), data("tracking.json")["the_installed_version_has_the_name"])
def test_the_installed_version_has_the_name(module: str, name: str) -> None:
    assert attrgetter(name)(import_module(module))


def test_a_client_without_its_tracing_client_reads_runs_and_refuses_traces(
    store_uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert mlflow_private.tracing_client(MlflowClient(store_uri))
    made = MlflowClient.__init__

    def without(client: MlflowClient, uri: str) -> None:
        made(client, uri)
        del client._tracing_client

    monkeypatch.setattr(MlflowClient, "__init__", without)
    store = connect(store_uri)
    assert store.client.search_experiments()
    with pytest.raises(TrackingError, match="has no `_tracing_client`, which evaltrack needs; run with --traces off"):
        mlflow_private.tracing_client(store.client)
