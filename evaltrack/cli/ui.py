"""Defines `evaltrack ui`: serves evaltrack's pages with a new MLflow server, or alone in front of a remote one."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from types import FrameType

import click

from evaltrack.errors import Guide, TrackingError, UsageError

GRACE = 15.0
"""Seconds that a server has to end before it is killed."""


@click.command()
@click.option("--port", default=5000, show_default=True, type=click.IntRange(1, 65535), help="Port to listen on.")
def ui(port: int) -> int:
    """Serve evaltrack's pages and MLflow's UI on this machine; Ctrl-C ends it.

    \b
    Examples:
      evaltrack ui                      the store that MLflow's own settings name, at http://127.0.0.1:5000/evaltrack/
      evaltrack ui --port 8080
      MLFLOW_TRACKING_URI=sqlite:///team.db evaltrack ui
      MLFLOW_TRACKING_URI=https://mlflow.example.com evaltrack ui   that server, with your own credentials

    If MLFLOW_TRACKING_URI is a database or a folder, it starts `mlflow server --app-name evaltrack` on it. If it is a
    server, it serves only the pages and forwards their requests with the credentials of MLflow's variables. To serve
    other machines, start `mlflow server --app-name evaltrack` yourself.
    """
    from evaltrack.tracking.store import connect

    store = connect()
    if store.is_server:
        return _serve_forwarding(store.uri, port)
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
        raise UsageError(f"port {port} is in use; choose another with --port", guide=Guide.PAGE_SERVER)
    where = f"http://127.0.0.1:{port}"
    click.echo(f"Starting MLflow's server at {where}/; the pages are at {where}/evaltrack/ (Ctrl-C ends it)", err=True)
    command = [sys.executable, "-m", "mlflow", "server", "--app-name", "evaltrack", "--workers", "1"]
    hosts = f"localhost:{port},127.0.0.1:{port}"  # MLflow's own are patterns (`10.*`), which host names can match
    return _serve(
        [*command, "--host", "127.0.0.1", "--port", str(port), "--allowed-hosts", hosts],
        {**os.environ, "MLFLOW_BACKEND_STORE_URI": store.uri},  # not as an argument: it may hold a password
    )


def _serve(command: list[str], env: dict[str, str]) -> int:
    """Run the server in its own process group until it ends or is stopped. No process is left."""
    from evaltrack.system.processes import end_group, own_group, stop_signals

    stop_times: list[float] = []

    def stop(_number: int, _frame: FrameType | None) -> None:
        stop_times.append(time.monotonic())

    for number in stop_signals():
        signal.signal(number, stop)
    process = subprocess.Popen(command, env=env, stdout=2, **own_group())  # noqa: S603
    try:
        while not stop_times and process.poll() is None:
            time.sleep(0.2)
    finally:
        end_group(process, GRACE)
    if not stop_times:
        raise TrackingError("mlflow server ended; its messages above say why")
    return 0


def _serve_forwarding(uri: str, port: int) -> int:
    """Serve the pages to this user alone, because they use this user's credentials."""
    from evaltrack.privacy.addresses import shown_url
    from evaltrack.ui.forward import forwarding_app
    from evaltrack.ui.local import serve

    def ready(address: str, _file: str) -> None:
        click.echo(f"Ready: {address}evaltrack/ (runs of {shown_url(uri)}; press Ctrl-C to stop)", err=True)

    serve(lambda token: forwarding_app(uri, token), port, ready)
    return 0
