"""Creates the applications for `mlflow server --app-name`: MLflow's own with evaltrack's pages under `/evaltrack/`.

Only `mlflow server` imports this module, so it imports MLflow at its top. It controls no access: the pages ask MLflow's
API with the credentials of their reader.
"""

from __future__ import annotations

import os
from typing import Any

from flask import Blueprint, Flask
from mlflow.server import app as mlflow_app

from evaltrack.tracking.mlflow_private import fastapi_app, share_gateway_token
from evaltrack.ui.files import OF_REPORTS, OF_UI, static_file


def create_app() -> Any:
    """Return the application of the entry point `evaltrack`, which is open to everybody who reaches the server."""
    _mount(mlflow_app)
    return fastapi_app(mlflow_app)


def _create_app_with_auth() -> Any:
    """Return the application of the entry point `evaltrack-basic-auth`, with MLflow's basic authentication."""
    from mlflow.server import auth

    for path in _mount(mlflow_app):
        auth.BEFORE_REQUEST_VALIDATORS[path, "GET"] = lambda: True  # the static files are for all who are signed in
    return auth.create_app(mlflow_app)


def __getattr__(name: str) -> Any:
    """Return `create_app_with_auth` after MLflow's own preparations for `basic-auth`, before the workers start.

    An incomplete setting then ends the command with one message.
    """
    if name != "create_app_with_auth":
        raise AttributeError(f"module {__name__} has no attribute {name}")
    from mlflow.server import auth

    if not os.environ.get("MLFLOW_FLASK_SERVER_SECRET_KEY"):
        raise ValueError("set MLFLOW_FLASK_SERVER_SECRET_KEY to a secret of your own, as for MLflow's `basic-auth`")
    auth.bootstrap_admin_user()
    share_gateway_token()
    return _create_app_with_auth


def _mount(app: Flask) -> list[str]:
    """Add the pages to MLflow's application, under its `--static-prefix`, and return their paths."""
    own = "/get-artifact"
    prefix = next(rule.rule for rule in app.url_map.iter_rules() if rule.rule.endswith(own)).removesuffix(own)
    pages = Blueprint("evaltrack", __name__)
    pages.add_url_rule("/", "index", lambda: static_file("index.html", OF_UI))
    pages.add_url_rule("/<name>", "file", lambda name: static_file(name, OF_UI))
    app.register_blueprint(pages, url_prefix=f"{prefix}/evaltrack")
    return [f"{prefix}/evaltrack{path}" for path in ("", "/", *(f"/{name}" for name in OF_UI + OF_REPORTS))]
