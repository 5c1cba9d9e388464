"""Runs a web server for one person on this machine, and refuses requests without the token in its address.

Its address holds a token, so that other users of the machine and pages of other sites can neither read nor write. It
refuses a `Host` that is not loopback, which prevents DNS rebinding.
"""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path

from flask import Flask, abort, request
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from evaltrack.errors import Guide, UsageError
from evaltrack.system.files import make_private_file, make_private_folder, state_folder


def guarded(app: Flask, token: str) -> Flask:
    """Return the application with a check of each request: token, host and origin."""

    def check() -> None:
        name = request.host.rpartition(":")[0] if not request.host.endswith("]") else request.host
        if (name or request.host) not in ("127.0.0.1", "localhost", "[::1]"):
            abort(421, "this server only answers under 127.0.0.1")
        if not hmac.compare_digest(request.path.split("/")[1].encode(), token.encode()):
            abort(404, "the address holds no valid token; open the one that the command printed")
        site = request.headers.get("Sec-Fetch-Site", "same-origin")  # a client without it is no browser
        if request.method == "POST" and not (request.is_json and site == "same-origin"):
            abort(403, "the request came from another site")

    app.before_request(check)
    return app


class _QuietHandler(WSGIRequestHandler):
    """A request handler that logs nothing, because each address holds the token."""

    def log(self, type: str, message: str, *args: object) -> None:  # noqa: A002
        """Log nothing."""


def open_server(make: Callable[[str], Flask], port: int = 0) -> tuple[BaseWSGIServer, str]:
    """Return a server that is ready to serve, and the address of its page. Port 0 takes a free port.

    Raises:
        UsageError: the port is taken.
    """
    token = secrets.token_urlsafe(24)
    try:
        server = make_server("127.0.0.1", port, make(token), threaded=True, request_handler=_QuietHandler)
    except (OSError, SystemExit):
        problem = f"nothing can listen on 127.0.0.1:{port}; choose another port (`port=`)"
        raise UsageError(problem, guide=Guide.PAGE_SERVER) from None
    return server, f"http://127.0.0.1:{server.server_port}/{token}/"


def serve(make: Callable[[str], Flask], port: int, ready: Callable[[str, str], object]) -> None:
    """Serve until the user interrupts the process.

    `ready` gets the address, and the address of a file that redirects there.

    Raises:
        UsageError: the port is taken.
    """
    server, address = open_server(make, port)
    with server, _redirect(address) as file:
        ready(address, file.as_uri())
        server.serve_forever()


@contextmanager
def _redirect(address: str) -> Iterator[Path]:
    """Write a file that redirects to the address, because all users of the machine can see command lines."""
    path = state_folder() / "page.html"
    make_private_folder(path.parent)
    make_private_file(path)
    path.write_text(
        f'<!DOCTYPE html><meta http-equiv="refresh" content="0; url={escape(address)}">\n', encoding="utf-8"
    )
    try:
        yield path.absolute()
    finally:
        path.unlink(missing_ok=True)
