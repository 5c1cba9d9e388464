"""Runs a web server for one person on this machine, and refuses requests without the token in its address.

Its address holds a token, so that other users of the machine and pages of other sites can neither read nor write. It
refuses a `Host` that is not loopback, which prevents DNS rebinding.
"""

from __future__ import annotations

import hmac
import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from html import escape
from pathlib import Path
from urllib.parse import urlsplit

from flask import Flask, abort, request
from werkzeug.serving import BaseWSGIServer, WSGIRequestHandler, make_server

from evaltrack.errors import Guide, UsageError
from evaltrack.system.files import make_private_file, make_private_folder, state_folder

BODY_LIMIT = 256 * 1024


def guarded(app: Flask, token: str) -> Flask:
    """Return the application with a check of each request: token, host and origin."""
    app.config["MAX_CONTENT_LENGTH"] = BODY_LIMIT

    def check() -> None:
        name = request.host.rpartition(":")[0] if not request.host.endswith("]") else request.host
        if (name or request.host) not in ("127.0.0.1", "localhost", "[::1]"):
            abort(421, "this server only answers under 127.0.0.1")
        if not hmac.compare_digest(request.path.split("/")[1].encode(), token.encode()):
            abort(404, "the address holds no valid token; open the one that the command printed")
        if request.method == "POST" and not (request.is_json and _is_from_here()):
            abort(403, "the request came from another site")

    app.before_request(check)
    return app


def _is_from_here() -> bool:
    """Return True if a request is from the own page or from no browser.

    A page cannot forge `Sec-Fetch-Site`; a client that sends neither it nor `Origin` is no browser.
    """
    site, origin = request.headers.get("Sec-Fetch-Site"), request.headers.get("Origin")
    if site is not None:
        return site == "same-origin"
    return origin is None or urlsplit(origin).netloc.lower() == request.host.lower()


class _QuietHandler(WSGIRequestHandler):
    """A request handler that logs nothing, because each address holds the token."""

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Log nothing."""

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
    """Serve until the process is interrupted.

    `ready` gets the address, and the address of a file that redirects there.

    Raises:
        UsageError: the port is taken.
        KeyboardInterrupt: the user interrupted the process.
    """
    server, address = open_server(make, port)
    thread = threading.Thread(target=server.serve_forever, daemon=True, name="evaltrack-page")
    thread.start()
    try:
        with _redirect(address) as file:
            ready(address, file.as_uri())
            while thread.is_alive():
                thread.join(1.0)
    finally:
        server.shutdown()
        server.server_close()


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
