"""Defines `evaltrack ui`: serves evaltrack's pages with a new MLflow server, or alone in front of a remote one.

The server answers only under exact host names, which prevents DNS rebinding.
"""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from ipaddress import IPv4Address, IPv6Address, ip_address
from types import FrameType

import click

from evaltrack.errors import Guide, TrackingError, UsageError

HOSTS_HELP = "Additional hosts to serve, separated by commas: NAME or NAME:PORT. Needed with --host 0.0.0.0."

GRACE = 15.0
"""Seconds that a server has to end before it is killed."""


_NAME = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")


def _host_names(_ctx: click.Context, _param: click.Parameter, text: str) -> list[str]:
    """Return the names in a list that commas separate. Before anything else, as a server creates its database."""
    names = [part.strip().lower() for part in text.split(",") if part.strip()]
    for each in names:
        if not _NAME.fullmatch(each):
            cure = "write names separated by commas, without patterns: mlflow.example.com,10.0.0.7:8080"
            raise UsageError(f"--allowed-hosts: `{each}` is not a host; {cure}")
    return names


@click.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; the page has no password.")
@click.option("--port", default=5000, show_default=True, type=click.IntRange(1, 65535), help="Port to listen on.")
@click.option("--allowed-hosts", default="", help=HOSTS_HELP, callback=_host_names)
def ui(host: str, port: int, allowed_hosts: list[str]) -> int:
    """Serve evaltrack's pages and MLflow's UI on this machine; Ctrl-C ends it.

    \b
    Examples:
      evaltrack ui                      the store that MLflow's own settings name, at http://127.0.0.1:5000/evaltrack/
      evaltrack ui --port 8080
      evaltrack ui --host 0.0.0.0 --allowed-hosts mlflow.example.com   for others, also behind a proxy of that name
      MLFLOW_TRACKING_URI=sqlite:///team.db evaltrack ui
      MLFLOW_TRACKING_URI=https://mlflow.example.com evaltrack ui   that server, with your own credentials

    If MLFLOW_TRACKING_URI is a database or a folder, it starts `mlflow server --app-name evaltrack` on it. If it is a
    server, it serves only the pages and forwards their requests with the credentials of MLflow's variables.
    """
    from evaltrack.tracking.store import connect

    store = connect()
    if store.is_server:
        return _serve_forwarding(store.uri, host, port, allowed_hosts)
    hosts = _host_options(host, port, allowed_hosts)
    _check_free(host, port)
    address = _address(host)
    reached = host if not address or not address.is_unspecified else "127.0.0.1" if address.version == 4 else "::1"
    where = f"http://{_bracketed(reached)}:{port}"
    click.echo(f"Starting MLflow's server; the page will be at {where}/evaltrack/ (press Ctrl-C to stop)", err=True)
    command = [sys.executable, "-m", "mlflow", "server", "--app-name", "evaltrack", "--workers", "1"]
    return _serve(
        [*command, "--host", host, "--port", str(port), *hosts],
        {**os.environ, "MLFLOW_BACKEND_STORE_URI": store.uri},  # not as an argument: it may hold a password
        lambda: click.echo(f"Ready: {where}/evaltrack/ (MLflow itself: {where}/)", err=True),
        (reached, port),
    )


def _host_options(host: str, port: int, names: list[str]) -> list[str]:
    """Return options that make MLflow answer only under exact hosts.

    MLflow's defaults are patterns (`10.*`) that host names can match too. MLflow refuses requests from the origin of
    its own pages unless the origin is loopback or allowed.
    """
    outer = outer_hosts(host, port, names)
    origins = ",".join(f"{scheme}://{each}" for each in outer for scheme in ("http", "https"))
    options = ["--allowed-hosts", ",".join([*loopback_hosts(port), *outer])]
    return [*options, "--cors-allowed-origins", origins] if outer else options


def _serve_forwarding(uri: str, host: str, port: int, allowed_hosts: list[str]) -> int:
    """Serve the pages to this user alone, because they use this user's credentials."""
    from evaltrack.privacy.addresses import shown_url
    from evaltrack.ui.forward import forwarding_app
    from evaltrack.ui.local import serve

    if host not in LOOPBACK or allowed_hosts:
        cure = "leave out --host and --allowed-hosts; for others start that server with `--app-name evaltrack`"
        raise UsageError(
            f"pages over the server {shown_url(uri)} act with your credentials, for this machine only: {cure}"
        )

    def ready(address: str, _file: str) -> None:
        click.echo(f"Ready: {address}evaltrack/ (runs of {shown_url(uri)}; press Ctrl-C to stop)", err=True)

    with suppress(KeyboardInterrupt):
        serve(lambda token: forwarding_app(uri, token), port, ready)
    return 0


def _check_free(host: str, port: int) -> None:
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        cure = "choose another with --port or --host"
        raise UsageError(
            f"nothing can listen on {host}:{port}: {error.strerror or error}; {cure}", guide=Guide.PAGE_SERVER
        ) from None


def _serve(command: list[str], env: dict[str, str], ready: Callable[[], None], address: tuple[str, int]) -> int:
    """Run the server in its own process group until it ends or is stopped. No process is left."""
    from evaltrack.system.processes import end_group, own_group, stop_signals

    stop_times: list[float] = []

    def stop(_number: int, _frame: FrameType | None) -> None:
        stop_times.append(time.monotonic())

    before = {number: signal.signal(number, stop) for number in stop_signals()}
    process = subprocess.Popen(command, env=env, stdout=2, **own_group())  # noqa: S603
    try:
        is_ready = False
        while not stop_times and process.poll() is None:
            if not is_ready and (is_ready := _answers(address)):
                ready()
            time.sleep(0.2)
    finally:
        end_group(process, GRACE)
        for number, handler in before.items():
            signal.signal(number, handler)
    if not stop_times:
        raise TrackingError(f"mlflow server ended with code {process.returncode}; its messages above say why")
    return 0


def _answers(address: tuple[str, int]) -> bool:
    try:
        with socket.create_connection(address, timeout=1):
            return True
    except OSError:
        return False


LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


def loopback_hosts(port: int) -> list[str]:
    """Return the `Host` values that reach a server on this machine from itself."""
    return _with_port(LOOPBACK, port)


def outer_hosts(host: str, port: int, names: list[str]) -> list[str]:
    """Return the `Host` values under which others reach a server that listens on `host`.

    `names` holds more hosts.

    Raises:
        UsageError: a server for all addresses has no names.
    """
    address = _address(host)
    if address and address.is_unspecified and not names:
        raise UsageError(
            f"--host {host}: name the hosts under which others reach it: --allowed-hosts mlflow.example.com"
        )
    hosts = [] if address and address.is_unspecified else _with_port([_bracketed(host)], port)
    for each in names:
        hosts += [each] if re.search(r":[0-9]+$", each) else [each, f"{each}:{port}"]
    inner = set(loopback_hosts(port))
    return [each for each in dict.fromkeys(hosts) if each not in inner]


def _with_port(names: Iterable[str], port: int) -> list[str]:
    """Return each name with the port, and without it for port 80, which browsers leave out."""
    return [each for name in names for each in ((f"{name}:{port}", name) if port == 80 else (f"{name}:{port}",))]


def _address(host: str) -> IPv4Address | IPv6Address | None:
    """Return the address that a host is; None for a name."""
    with suppress(ValueError):
        return ip_address(host)
    return None


def _bracketed(host: str) -> str:
    """Return a host as URLs write it: IPv6 addresses in brackets, names in lower case."""
    return f"[{host}]" if ":" in host else host.lower()
