"""What went wrong, as a page and in place of one whose head was sent already: never a traceback."""

from __future__ import annotations

import logging
from typing import Any

from flask import Response, g, request
from werkzeug.exceptions import HTTPException

from evaltrack.errors import EvaltrackError, InconclusiveError, TrackingError
from evaltrack.server.shell import page, part
from evaltrack.tracking.store import is_missing

_log = logging.getLogger(__name__)
_HEADINGS = {
    400: "This address is not complete",
    403: "Not permitted",
    404: "Not found",
    409: "That cannot be done",
    503: "MLflow's store does not answer",
}


def explained(error: Exception) -> Response:
    """The page that says what went wrong."""
    status, words = _words(error)
    return page(f"{words['heading']} · evaltrack", "error.html", status, **words)


def late_problem(error: BaseException) -> str:
    """The same for the rest of a page."""
    return part("error.html", **_words(error)[1])


def _words(error: BaseException) -> tuple[int, dict[str, Any]]:
    if isinstance(error, HTTPException):
        status, message = error.code or 500, error.description or error.name
    elif isinstance(error, EvaltrackError):
        status, message = _status(error), error.message
    else:
        _log.error("the page %s failed", request.path, exc_info=error)
        status, message = 500, "this is a fault of evaltrack; the server's log holds it"
    heading = _HEADINGS.get(status, "That did not work")
    return status, {"heading": heading, "told": message, "links": g.get("evaltrack_links", ())}


def _status(error: EvaltrackError) -> int:
    if isinstance(error, TrackingError):
        return 404 if is_missing(error) else 503
    if isinstance(error, InconclusiveError):
        return 409
    return 400
