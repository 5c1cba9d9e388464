"""Serves the static files of evaltrack's pages with their security headers."""

from __future__ import annotations

from importlib.resources import files

from flask import Response, abort, make_response

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'self'; "
    "require-trusted-types-for 'script'"
)
FRAME_POLICY = (
    "sandbox allow-scripts allow-popups allow-popups-to-escape-sandbox allow-downloads; default-src 'none'; "
    "script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
)
"""The policy of a report, which has scripts: a sandbox without access to the page around it and to MLflow's API."""

HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
KINDS = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
OF_REPORTS = ("colours.css", "common.js", "report.css", "theme.js")
OF_UI = (
    "index.html",
    "frame.html",
    "ui.css",
    "ui.js",
    "mlflow.js",
    "dom.js",
    "overview.js",
    "golden.js",
    "question.js",
)
PAGES = ("index.html", "review.html")
"""The pages without the head that they share."""

OF_REVIEW = ("review.html", "review.css", "review.js", "dom.js")


def static_file(name: str, allowed: tuple[str, ...]) -> Response:
    """Return an allowed file, or one that reports use too."""
    if name not in allowed + OF_REPORTS:
        abort(404, "there is no such file")
    static = files("evaltrack.report.html" if name in OF_REPORTS else "evaltrack.ui").joinpath("static")
    head = static.joinpath("head.html").read_text(encoding="utf-8") if name in PAGES else ""
    answer = make_response(head + static.joinpath(name).read_text(encoding="utf-8"))
    answer.content_type = f"{KINDS[name.rpartition('.')[2]]}; charset=utf-8"
    answer.headers.update(HEADERS)
    if name == "frame.html":
        answer.headers["Content-Security-Policy"] = FRAME_POLICY
    return answer
