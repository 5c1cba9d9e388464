"""The hosts under which `evaltrack ui` answers: exact names, so that no foreign page reaches it under its own."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable
from contextlib import suppress
from ipaddress import ip_address

from evaltrack.errors import UsageError

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")

OUTSIDE = {socket.AF_INET: "192.0.2.1", socket.AF_INET6: "2001:db8::1"}
"""Addresses of documentation: a route to one tells which address of this machine others see; nothing is sent."""

_NAME = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?|\[[0-9a-f:.]+\])(?::[0-9]{1,5})?")


def loopback_hosts(port: int) -> list[str]:
    """The values of `Host` that reach a server on this machine from itself."""
    return _with_port(LOOPBACK, port)


def outer_hosts(host: str, port: int, names: str) -> list[str]:
    """The values of `Host` under which others reach a server that listens on `host`, and those in `names`, with commas.

    Raises:
        UsageError: one of the names is not a host.
    """
    own = _own_names() if _is_any(host) else [_bracketed(host)]
    hosts = _with_port(own, port)
    for each in filter(None, (part.strip().lower() for part in names.split(","))):
        if not _NAME.fullmatch(each):
            cure = "write names with commas and no pattern: mlflow.example.com,10.0.0.7:8080"
            raise UsageError(f"--allowed-hosts: `{each}` is not a host; {cure}")
        hosts += [each] if re.search(r":[0-9]+$", each) else [each, f"{each}:{port}"]
    inner = set(loopback_hosts(port))
    return [each for each in dict.fromkeys(hosts) if each not in inner]


def _with_port(names: Iterable[str], port: int) -> list[str]:
    """Each name as a browser sends it, which leaves out the port of plain HTTP."""
    return [each for name in names for each in ((f"{name}:{port}", name) if port == 80 else (f"{name}:{port}",))]


def _is_any(host: str) -> bool:
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False


def _bracketed(host: str) -> str:
    """A host as it stands in an address."""
    return f"[{host}]" if ":" in host else host.lower()


def _own_names() -> list[str]:
    """The name of this machine, and the addresses that belong to it."""
    name = socket.gethostname().lower()
    addresses = []
    with suppress(OSError):
        addresses += [str(info[4][0]) for info in socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)]
    for family, address in OUTSIDE.items():
        with suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((address, 9))
            addresses.append(str(probe.getsockname()[0]))
    return [name, *(_bracketed(address) for address in dict.fromkeys(addresses) if "%" not in address)]
