"""Makes an MLflow client that repeats calls without a whole reply, and shortens a store's errors to one safe line.

MLflow retries for four minutes if a server is gone, and not at all if a reply is cut off. Here a server may be gone for
as long as a restart takes. A call whose reply was cut off is repeated; all writes of evaltrack are idempotent.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from evaltrack.privacy.addresses import shown_text
from evaltrack.records.base import cut
from evaltrack.system import retries

if TYPE_CHECKING:
    from mlflow import MlflowClient


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

    return once() if RETRIES in os.environ else retries.SERVER_IS_SILENT.call(once, has_no_reply)


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

    client: Any = Persistent(MlflowClient(uri)) if has_wire(uri) else MlflowClient(uri)
    return client  # type: ignore[no-any-return]


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


LONGEST_REASON = 400


def has_no_reply(error: BaseException) -> bool:
    """Return True if no whole reply came, or only one that the server or its database is busy or gone.

    The server may have done what was asked.
    """
    from requests.exceptions import ChunkedEncodingError, ContentDecodingError, RetryError, Timeout
    from requests.exceptions import ConnectionError as NoConnectionError

    behind = error.__cause__ or error.__context__
    if isinstance(behind, NoConnectionError | RetryError | Timeout | ChunkedEncodingError | ContentDecodingError):
        return True
    was_cut_off = getattr(behind, "connection_invalidated", False)  # of SQLAlchemy's errors
    return was_cut_off or getattr(error, "error_code", "") == "TEMPORARILY_UNAVAILABLE"


def reason(error: BaseException) -> str:
    """Return the first line of an error, which MLflow and SQLAlchemy write for people, with secrets in URLs masked."""
    text = str(error).strip() or type(error).__name__
    return cut(shown_text(" ".join(text.splitlines()[0][:10_000].split())), LONGEST_REASON)
