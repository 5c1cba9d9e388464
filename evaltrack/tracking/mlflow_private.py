"""Wraps the private names of MLflow that evaltrack uses, each with the consequence if a release drops it."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flask import Flask
    from mlflow import MlflowClient


def tracing_client(client: MlflowClient) -> Any:
    """Return the `TracingClient`, which sends spans in batches. `MlflowClient` needs two calls per span.

    Without it, writing traces is an error.
    """
    return client._tracing_client


def dataset_records_reader(client: MlflowClient) -> Any:
    """Return the method that reads the records of a dataset. The public property reads from the store of the process.

    Without it, reading a dataset is an error.
    """
    return tracing_client(client).store._load_dataset_records


def has_child_spans(trace_id: str) -> bool:
    """Return True if a trace that is being made has more than its root.

    Without the name it returns True. Then functions that make no spans are still called within one.
    """
    with suppress(Exception):
        from mlflow.tracing import trace_manager

        manager: Any = trace_manager.InMemoryTraceManager
        with manager.get_instance().get_trace(trace_id) as trace:
            return len(trace.span_dict) > 1
    return True


def fastapi_app(app: Flask) -> Any:
    """Return MLflow's server around its Flask app. Without it `mlflow server --app-name evaltrack` does not start."""
    from mlflow.server import fastapi_app

    return fastapi_app.create_fastapi_app(app)


def share_gateway_token() -> None:
    """Give all workers of the server one token for the gateway, as MLflow's `basic-auth` does before they start.

    A release that reads another variable makes one token per worker. Then a judge behind the gateway is refused.
    """
    os.environ.setdefault("_MLFLOW_INTERNAL_GATEWAY_AUTH_TOKEN", secrets.token_hex(32))
