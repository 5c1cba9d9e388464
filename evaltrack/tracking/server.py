"""Sends a page's request to an MLflow server with the user's login, and finds its AI gateway (for `endpoints:`)."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from evaltrack.errors import TrackingError, UsageError
from evaltrack.privacy.addresses import shown_url
from evaltrack.tracking.server_retries import is_http
from evaltrack.tracking.store import connect

if TYPE_CHECKING:
    from requests import Response

CHAT_PATH = "/gateway/mlflow/v1"
"""The path that `/chat/completions` is appended to. Its `model` is the name of an endpoint."""


@dataclass(frozen=True)
class Gateway:
    """The address of a server's gateway, and the value of the header `Authorization`; empty for none."""

    address: str
    authorization: str = field(default="", repr=False)


def open_gateway(store_uri: str | None) -> Gateway:
    """Return the gateway of the server at `store_uri`, or of the store in MLflow's settings.

    Raises:
        UsageError: the store is no server.
        TrackingError: it does not answer.
    """
    from mlflow.utils.credentials import get_default_host_creds

    uri = connect(store_uri).uri
    if not is_http(uri):
        cure = "set MLFLOW_TRACKING_URI, or `store`, to the address of a server: http://HOST:PORT"
        raise UsageError(f"`endpoints:` asks the gateway of a server, and the store is {shown_url(uri)}; {cure}")
    login = get_default_host_creds(uri)  # type: ignore[no-untyped-call]
    if login.username and login.password:
        joint = base64.b64encode(f"{login.username}:{login.password}".encode()).decode()
        return Gateway(uri.rstrip("/") + CHAT_PATH, f"Basic {joint}")
    return Gateway(uri.rstrip("/") + CHAT_PATH, f"Bearer {login.token}" if login.token else "")


def pass_on(uri: str, method: str, path: str, query: Mapping[str, str], body: Any) -> Response:
    """Send a request to the server at `uri` with the credentials in MLflow's own variables, and return its answer.

    Raises:
        TrackingError: it does not answer.
    """
    from mlflow.exceptions import MlflowException
    from mlflow.utils.credentials import get_default_host_creds
    from mlflow.utils.rest_utils import http_request

    creds = get_default_host_creds(uri)  # type: ignore[no-untyped-call]
    sent = {"max_retries": 1, "raise_on_status": False, "params": dict(query), "json": body}
    try:
        answer: Response = http_request(creds, path, method, **sent)  # type: ignore[no-untyped-call]
    except (MlflowException, OSError) as error:
        raise TrackingError(f"the tracking server {shown_url(uri)} does not answer") from error
    return answer
