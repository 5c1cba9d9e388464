"""Serves evaltrack's pages here for a remote tracking server, and forwards their requests with this user's login."""

from __future__ import annotations

from flask import Flask, Response, abort, jsonify, redirect, request

from evaltrack.errors import TrackingError
from evaltrack.privacy.addresses import shown_url
from evaltrack.tracking.server import pass_on
from evaltrack.ui.files import OF_UI, static_file
from evaltrack.ui.local import guarded

API = "ajax-api/2.0/mlflow"
FORWARDED = {
    "get-artifact": "GET",
    f"{API}/users/current": "GET",
    f"{API}/experiments/search": "POST",
    f"{API}/experiments/set-experiment-tag": "POST",
    f"{API}/runs/search": "POST",
    f"{API}/runs/set-tag": "POST",
}
"""The only parts of MLflow's API that are forwarded, with their methods."""


def forwarding_app(store_uri: str, token: str) -> Flask:
    """Return an application with the pages below `/TOKEN/evaltrack/` that forwards requests to `store_uri`."""
    app = guarded(Flask(__name__, static_folder=None, template_folder=None), token)
    app.add_url_rule("/<_token>/", "mlflow", lambda _token: redirect(shown_url(store_uri)))
    app.add_url_rule("/<_token>/evaltrack/", "index", lambda _token: static_file("index.html", OF_UI))
    app.add_url_rule("/<_token>/evaltrack/<name>", "file", lambda _token, name: static_file(name, OF_UI))
    app.add_url_rule(
        "/<_token>/<path:path>",
        "forward",
        lambda _token, path: _forward(store_uri, path),
        methods=["GET", "POST"],
        provide_automatic_options=False,
    )
    return app


def _forward(store_uri: str, path: str) -> Response | tuple[Response, int]:
    if FORWARDED.get(path) != request.method:
        abort(404, "the pages do not request this name")
    body = request.get_json() if request.method == "POST" else None
    try:
        reply = pass_on(store_uri, request.method, f"/{path}", request.args, body)
    except TrackingError as error:
        return jsonify(message=error.message), 502
    kind = reply.headers.get("Content-Type", "application/octet-stream")
    kept = {"Content-Type": kind, "Content-Disposition": "attachment", "X-Content-Type-Options": "nosniff"}
    return Response(reply.content, reply.status_code, kept)
