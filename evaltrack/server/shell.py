"""The shell of the server's pages: their style and script, and the policy that lets nothing else in."""

from __future__ import annotations

import base64
import hashlib
import logging
from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from flask import Response, g, make_response, request
from werkzeug.exceptions import HTTPException

from evaltrack.compare.histories import ABSENT, EDITED, ERROR, FAILED, PASSED, UNMEASURED
from evaltrack.errors import EvaltrackError, InconclusiveError, TrackingError
from evaltrack.report.comparison.words import TONES, VERDICTS
from evaltrack.report.html.page import BODY, shown, templates
from evaltrack.report.html.page import static as report_static
from evaltrack.server.figures import day, judge_of, moment
from evaltrack.tracking.store import is_missing

if TYPE_CHECKING:
    from jinja2 import Environment

REASON_LIMIT = 500

SIGNS = {PASSED: "·", FAILED: "✕", ERROR: "!", UNMEASURED: "?", EDITED: "~", ABSENT: " "}
"""The sign of each outcome of a question in a run."""

LETTERS = {
    PASSED: "passed",
    FAILED: "failed",
    ERROR: "ended in an error",
    UNMEASURED: "was not measured",
    EDITED: "was another question",
    ABSENT: "was not asked",
}
"""The meaning of each outcome."""


@cache
def static(name: str) -> str:
    """The style sheet or script of the pages."""
    return files("evaltrack.server").joinpath("static", name).read_text(encoding="utf-8")


@cache
def page_templates() -> Environment:
    """The templates beside this module; whatever is put into one is escaped."""
    environment = templates("evaltrack.server")
    environment.filters |= {"shown": shown, "moment": moment, "day": day, "judge": judge_of}
    environment.globals |= {
        "reason_limit": REASON_LIMIT,
        "badge_of": lambda verdict, _headline: (VERDICTS.get(verdict, verdict), TONES.get(verdict, "warn")),
    }
    environment.globals |= {"letter_signs": SIGNS, "letter_words": LETTERS}
    return environment


def compile_templates() -> None:
    """Compile all of them: it takes longer than filling one."""
    for name in page_templates().list_templates():
        page_templates().get_template(name)


def page(title: str, template: str, status: int = 200, **values: Any) -> Response:
    """A page out of a template."""
    return make_response(page_text(title, template, **values), status)


def page_text(title: str, template: str, **values: Any) -> str:
    """The same as text."""
    return shell(title, part(template, **values))


def part(template: str, **values: Any) -> str:
    """What a template shows."""
    return page_templates().get_template(template).render(**values)


def shell(title: str, body: str) -> str:
    """A whole HTML document around `body`, in which foreign text is escaped already."""
    return f"{shell_head(title)}\n{body}\n<script>{_script()}</script>\n</body>\n</html>\n"


@cache
def _script() -> str:
    return report_static("stacking.js") + static("pages.js")


def shell_head(title: str) -> str:
    """Its beginning, up to its body."""
    style, theme, script = (
        report_static("colours.css") + static("pages.css") + report_static("stacking.css"),
        report_static("theme.js"),
        _script(),
    )
    policy = {
        "default-src": "'none'",
        "style-src": _hashed(style),
        "script-src": f"{_hashed(theme)} {_hashed(script)}",
        "img-src": "data:",
        "connect-src": "'self'",  # what is under way is asked for again
        "base-uri": "'none'",
        "form-action": "'self'",
    }
    rules = "; ".join(f"{name} {value}" for name, value in policy.items())
    parts = [
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">',
        f'<meta http-equiv="Content-Security-Policy" content="{escape(rules)}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="referrer" content="same-origin">',  # forms need their Origin
        f"<title>{escape(shown(title, 200))}</title>",
        f"<style>{style}</style>\n<script>{theme}</script>",
        BODY,
    ]
    return "\n".join(parts)


def _hashed(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


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
