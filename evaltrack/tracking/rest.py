"""A request of the pages to a tracking server's REST API, passed on with the credentials of this user."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evaltrack.errors import TrackingError
from evaltrack.privacy.addresses import shown_url


@dataclass(frozen=True)
class Reply:
    """An answer of the server, of any status."""

    status: int
    kind: str
    content: bytes


def pass_on(uri: str, method: str, path: str, query: Mapping[str, str], body: Any) -> Reply:
    """Ask the server at `uri` with the credentials that MLflow's own variables name.

    Raises:
        TrackingError: it does not answer.
    """
    from mlflow.exceptions import MlflowException
    from mlflow.utils.credentials import get_default_host_creds
    from mlflow.utils.rest_utils import http_request

    creds = get_default_host_creds(uri)  # type: ignore[no-untyped-call]
    sent = {"max_retries": 1, "raise_on_status": False, "params": dict(query), "json": body}
    try:
        got = http_request(creds, path, method, **sent)  # type: ignore[no-untyped-call]
    except (MlflowException, OSError) as error:
        raise TrackingError(f"the tracking server {shown_url(uri)} does not answer") from error
    return Reply(got.status_code, got.headers.get("Content-Type", "application/octet-stream"), got.content)
