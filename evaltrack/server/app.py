"""The two applications that `mlflow server --app-name` starts: `evaltrack` and `evaltrack-basic-auth`."""

from __future__ import annotations

from contextlib import suppress
from threading import Thread
from typing import Any

from flask import Flask

from evaltrack.errors import EvaltrackError
from evaltrack.server.bounds import AsgiGuard, WsgiGuard
from evaltrack.server.pages import pages, routes
from evaltrack.server.shell import compile_templates
from evaltrack.tracking.server_internals import (
    BasicAuthAccess,
    OpenAccess,
    bootstrap_basic_auth,
    inside_store,
    open_app,
    prefixed,
    served,
    served_with_basic_auth,
)


def create_app() -> Any:
    """MLflow's server with our pages, open to whoever reaches it: entry point `evaltrack`."""
    app = open_app()
    _make_ready()
    app.register_blueprint(pages(OpenAccess()), url_prefix=prefixed("/evaltrack"))
    return _guarded(served(app))


def __getattr__(name: str) -> Any:
    """`create_app_with_auth`, whose settings are checked when it is looked up.

    `mlflow server` does so before it starts workers. Its own `basic-auth` is made ready there too: what is missing then
    ends the command with one message, instead of workers that die and are started anew for ever.
    """
    if name != "create_app_with_auth":
        raise AttributeError(f"module {__name__} has no attribute {name}")
    bootstrap_basic_auth()
    return _create_app_with_auth


def _create_app_with_auth() -> Any:
    """MLflow's server with its basic authentication and our pages: entry point `evaltrack-basic-auth`.

    Raises:
        mlflow.exceptions.MlflowException: MLflow's settings of basic authentication are incomplete.
    """
    app = open_app()
    _make_ready()
    app.register_blueprint(pages(BasicAuthAccess()), url_prefix=prefixed("/evaltrack"))
    return _guarded(served_with_basic_auth(app, [(prefixed(path), method) for path, method in routes()]))


def _make_ready() -> None:
    """Have what the first page needs, the store and the templates, opened in the background."""

    def load() -> None:
        with suppress(EvaltrackError):  # the page that needs it says what is wrong
            inside_store("")
        compile_templates()

    Thread(target=load, daemon=True, name="evaltrack-start").start()


def _guarded(app: Any) -> Any:
    """The application behind the guard, in the form in which it is served."""
    prefix = prefixed("/evaltrack")
    if isinstance(app, Flask):
        app.wsgi_app = WsgiGuard(app.wsgi_app, prefix)  # type: ignore[method-assign]
        return app
    return AsgiGuard(app, prefix)
