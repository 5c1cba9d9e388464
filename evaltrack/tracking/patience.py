"""How long an MLflow server, or its database, is waited for, and which calls are made again.

MLflow repeats a request for four minutes where a server is gone, and not at all where a reply ends half-way. Here a
server may be gone for as long as a restart takes; a call whose reply broke off is made again, which all that
evaltrack writes allows: written twice, it is there once.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from evaltrack.system import retries
from evaltrack.tracking.mlflow_private import read_span_files_with
from evaltrack.tracking.replies import broke_off, no_reply

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import TraceInfo
    from mlflow.store.artifact.artifact_repo import ArtifactRepository

RETRIES, TIMEOUT = "MLFLOW_HTTP_REQUEST_MAX_RETRIES", "MLFLOW_HTTP_REQUEST_TIMEOUT"

DATABASES = ("postgresql", "mysql", "mssql")
"""Kinds of databases that are servers, as the addresses of MLflow's stores begin."""

T = TypeVar("T")


def persist(call: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    """Make a call, and make it again where no whole reply came.

    Where `MLFLOW_HTTP_REQUEST_MAX_RETRIES` is set, MLflow itself waits for the server, as long as that says.

    Raises:
        MlflowException: no reply came in time, or the server refused.
    """

    def once() -> T:
        with impatient(timeout=30):
            return call(*args, **kwargs)

    whole = partial(retries.REPLY_BROKE_OFF.call, once, broke_off)
    return whole() if RETRIES in os.environ else retries.SERVER_IS_SILENT.call(whole, no_reply)


class Persistent:
    """One of MLflow's clients, each of whose calls is made by `persist`."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        attribute = getattr(self._client, name)
        return partial(persist, attribute) if callable(attribute) else attribute


def client_of(uri: str) -> MlflowClient:
    """A client of the store at `uri`; a persistent one where a wire leads there."""
    from mlflow import MlflowClient

    client: Any = MlflowClient(uri)
    read_span_files_with(client, partial(spans_file, uri))
    if has_wire(uri):
        client = Persistent(client)
    persistent: MlflowClient = client
    return persistent


def spans_file(uri: str, info: TraceInfo) -> ArtifactRepository:
    """Where the spans of a trace are that the store at `uri` holds as an artifact."""
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository
    from mlflow.tracing.utils.artifact_utils import get_artifact_uri_for_trace

    return get_artifact_repository(get_artifact_uri_for_trace(info), tracking_uri=uri)


def is_http(uri: str) -> bool:
    """Whether a store is reached through a server."""
    return uri.startswith(("http://", "https://"))


def has_wire(uri: str) -> bool:
    """Whether a store is another process, MLflow's server or a database, whose replies can be lost."""
    return is_http(uri) or uri.partition(":")[0].partition("+")[0] in DATABASES


@contextmanager
def impatient(timeout: int = 10) -> Iterator[None]:
    """Let MLflow repeat a request once; it repeats it for minutes by default. What the user set stays."""
    settings = {RETRIES: "1", TIMEOUT: str(timeout)}
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update({name: value for name, value in settings.items() if before[name] is None})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
