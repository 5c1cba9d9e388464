"""The private names of MLflow: whether the installed version has them, and what is said where it has not."""

from __future__ import annotations

from importlib import import_module
from operator import attrgetter
from pathlib import Path

import pytest
from mlflow import MlflowClient

from evaltrack.errors import TrackingError
from evaltrack.tracking import mlflow_private
from evaltrack.tracking.store import connect


@pytest.mark.filterwarnings("ignore:starlette.middleware.wsgi")  # MLflow imports what starlette drops
@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("mlflow.tracing.client", "TracingClient._get_artifact_repo_for_trace"),
        ("mlflow.tracing.client", "TracingClient.log_spans"),
        ("mlflow.store.tracking.abstract_store", "AbstractStore._load_dataset_records"),
        ("mlflow.store.tracking.rest_store", "RestStore._get_server_version.cache_clear"),
        ("mlflow.store.db.utils", "_initialize_tables"),
        ("mlflow.tracing.trace_manager", "InMemoryTraceManager.get_instance"),
        ("mlflow.server.fastapi_app", "create_fastapi_app"),
        ("mlflow.environment_variables", "_MLFLOW_INTERNAL_GATEWAY_AUTH_TOKEN"),
    ],
)
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


def test_mlflow_makes_its_tables_itself_where_it_has_another_name_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("mlflow.store.db.utils._initialize_tables")
    assert not mlflow_private.make_tables(f"sqlite:///{tmp_path}/new.db")


def test_a_span_of_which_nothing_is_known_counts_as_one_with_children() -> None:
    assert mlflow_private.has_child_spans("tr-unknown")
