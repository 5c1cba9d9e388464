"""Makes an MLflow client that repeats calls without a whole reply, and shortens a store's errors to one safe line.

MLflow retries for four minutes if a server is gone, and not at all if a reply is cut off. Here a server may be gone for
as long as a restart takes. A call whose reply was cut off is repeated; all writes of evaltrack are idempotent.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from evaltrack.privacy.addresses import shown_text
from evaltrack.records.base import cut
from evaltrack.system import retries
from evaltrack.tracking.mlflow_private import read_span_files_with

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import TraceInfo
    from mlflow.store.artifact.artifact_repo import ArtifactRepository


RETRIES, TIMEOUT = "MLFLOW_HTTP_REQUEST_MAX_RETRIES", "MLFLOW_HTTP_REQUEST_TIMEOUT"

DATABASES = ("postgresql", "mysql", "mssql")
"""Kinds of database servers, as the addresses of MLflow's stores begin."""

T = TypeVar("T")


def persist(call: Callable[..., T], /, *args: Any, **kwargs: Any) -> T:
    """Make a call, and repeat it if no complete reply came.

    If `MLFLOW_HTTP_REQUEST_MAX_RETRIES` is set, MLflow itself waits for the server, as long as it says.

    Raises:
        MlflowException: no reply came in time, or the server refused.
    """

    def once() -> T:
        with few_retries(timeout=30):
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
    """Return a client of the store at `uri`. The client is persistent if the store is another process."""
    from mlflow import MlflowClient

    client: Any = MlflowClient(uri)
    read_span_files_with(client, partial(spans_file, uri))
    if has_wire(uri):
        client = Persistent(client)
    persistent: MlflowClient = client
    return persistent


def spans_file(uri: str, info: TraceInfo) -> ArtifactRepository:
    """Return the artifact repository with the spans of a trace in the store at `uri`."""
    from mlflow.store.artifact.artifact_repository_registry import get_artifact_repository
    from mlflow.tracing.utils.artifact_utils import get_artifact_uri_for_trace

    return get_artifact_repository(get_artifact_uri_for_trace(info), tracking_uri=uri)


def is_http(uri: str) -> bool:
    """Return True if a store is reached through a server."""
    return uri.startswith(("http://", "https://"))


def has_wire(uri: str) -> bool:
    """Return True if a store is another process, MLflow's server or a database, whose replies can be lost."""
    return is_http(uri) or uri.partition(":")[0].partition("+")[0] in DATABASES


@contextmanager
def few_retries(timeout: int = 10) -> Iterator[None]:
    """Let MLflow retry a request once. By default it retries for minutes. The user's own settings apply."""
    settings = {RETRIES: "1", TIMEOUT: str(timeout)}
    before = {name: os.environ.get(name) for name in settings}
    os.environ.update({name: value for name, value in settings.items() if before[name] is None})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)


LOGIN = (
    "it answers with a web page, not with MLflow's API: is a login, or another service, in front of it? Set "
    "MLFLOW_TRACKING_TOKEN, or MLFLOW_TRACKING_USERNAME and MLFLOW_TRACKING_PASSWORD, or another MLFLOW_TRACKING_URI"
)
NOT_UNICODE = "Incorrect string value"
UNICODE = (
    "the database does not take all characters; its tables need utf8mb4 (of each: ALTER TABLE ... CONVERT TO CHARACTER "
    "SET utf8mb4; of a new database: CREATE DATABASE ... CHARACTER SET utf8mb4)"
)
"""MySQL's text for a character that its tables cannot hold, and our message for it."""

LONGEST_REASON = 400
"""Characters of an error's text that are shown."""

NO_JSON = "not in a valid JSON format"


def broke_off(error: BaseException) -> bool:
    """Return True if a reply was cut off. The server may have done what was asked."""
    from requests.exceptions import ChunkedEncodingError, ContentDecodingError

    behind = _behind(error)
    if isinstance(behind, ChunkedEncodingError | ContentDecodingError):
        return True
    if getattr(behind, "connection_invalidated", False):
        return True
    return _body(error).lstrip().startswith("{") and (NO_JSON in str(error) or isinstance(error, json.JSONDecodeError))


def no_reply(error: BaseException) -> bool:
    """Return True if no reply came at all, or only one that the server is busy or gone."""
    from requests.exceptions import ConnectionError as NoConnectionError
    from requests.exceptions import InvalidProxyURL, RetryError, SSLError, Timeout

    behind = _behind(error)
    if hasattr(behind, "connection_invalidated"):  # an error of SQLAlchemy, which mlflow-skinny lacks
        return getattr(error, "error_code", "") == "TEMPORARILY_UNAVAILABLE"
    return isinstance(behind, NoConnectionError | RetryError | Timeout) and not isinstance(
        behind, SSLError | InvalidProxyURL
    )


def _behind(error: BaseException) -> BaseException | None:
    """Return the error of the HTTP client or database that MLflow wraps."""
    return error.__cause__ or error.__context__


def _body(error: BaseException) -> str:
    """Return the text of an unexpected reply; empty if the error has none."""
    if isinstance(error, json.JSONDecodeError):
        return error.doc
    return str(error).partition("Response body: '")[2]


def is_web_page(error: BaseException) -> bool:
    """Return True if the reply was a web page."""
    return re.match(r"\s*<(!doctype\s+html|html|head|body)\b", _body(error)[:1000], re.IGNORECASE) is not None


def reason(error: BaseException) -> str:
    """Return the first line of an error, which MLflow and SQLAlchemy write for people, with secrets in URLs masked."""
    if is_web_page(error):
        return LOGIN
    text = str(error).strip() or type(error).__name__
    if NOT_UNICODE in text[:10_000]:
        return UNICODE
    return cut(shown_text(" ".join(text.splitlines()[0][:10_000].split())), LONGEST_REASON)
