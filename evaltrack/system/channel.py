"""A socket between a process and the one that started it, and a lifeline by which the child sees the parent's end.

Where a child can inherit descriptors they are a socket pair and a pipe. Else the child connects to a port of this
machine with a token that only its standard input held, and the standard input is the lifeline.
"""

from __future__ import annotations

import hmac
import os
import secrets
import socket
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from evaltrack.system.processes import own_group

LOOPBACK = "127.0.0.1"
TOKEN_BYTES = 32
LOOK_SECONDS = 0.2
"""Between two looks whether a child that has not connected yet is still there."""

CONNECT_SECONDS = 60.0
"""How long a child may take to connect, and whoever connects to show the token."""


@dataclass(frozen=True)
class Connected:
    """A child process, the parent's end of its socket, and the descriptor that is closed when the parent ends."""

    process: subprocess.Popen[bytes]
    socket: socket.socket
    lifeline: int


def start_connected(command: Sequence[str], arguments: Sequence[str], output: int) -> Connected:
    """Start ``command WORD WORD *arguments`` in a group of its own, where the words are for `connect_to_parent`.

    Its output goes to the descriptor `output`.

    Raises:
        OSError: it cannot be started, or does not connect in time.
    """
    start = _with_descriptors if hasattr(os, "fork") else _over_loopback
    return start(command, arguments, {"stdout": output, "stderr": output, **own_group()})


def _with_descriptors(command: Sequence[str], arguments: Sequence[str], settings: dict[str, Any]) -> Connected:
    ours, theirs = socket.socketpair()
    life, lifeline = os.pipe()
    words = [str(theirs.fileno()), str(life)]
    try:
        process = subprocess.Popen(  # noqa: S603 - the caller's own command
            [*command, *words, *arguments],
            stdin=subprocess.DEVNULL,
            pass_fds=(theirs.fileno(), life),
            **settings,
        )
    except BaseException:
        os.close(lifeline)
        ours.close()
        raise
    finally:
        theirs.close()
        os.close(life)
    return Connected(process, ours, lifeline)


def _over_loopback(command: Sequence[str], arguments: Sequence[str], settings: dict[str, Any]) -> Connected:
    token = secrets.token_bytes(TOKEN_BYTES)
    with socket.create_server((LOOPBACK, 0)) as listener:
        words = ["port", str(listener.getsockname()[1])]
        process = subprocess.Popen(  # noqa: S603 - the caller's own command
            [*command, *words, *arguments], stdin=subprocess.PIPE, **settings
        )
        assert process.stdin is not None
        with process.stdin:
            lifeline = os.dup(process.stdin.fileno())
            with suppress(OSError):  # one that ended already is seen by who waits for it
                process.stdin.write(token)
                process.stdin.flush()
        try:
            return Connected(process, _accepted(listener, token, process), lifeline)
        except BaseException:
            os.close(lifeline)
            process.kill()
            process.wait()
            raise


def _accepted(listener: socket.socket, token: bytes, process: subprocess.Popen[bytes]) -> socket.socket:
    """The connection that shows the token; a closed one where the process ends before.

    Raises:
        TimeoutError: it does not connect.
    """
    listener.settimeout(LOOK_SECONDS)
    for _ in range(int(CONNECT_SECONDS / LOOK_SECONDS)):
        with suppress(TimeoutError):
            connection, _address = listener.accept()
            if _shows(connection, token):
                return connection
            connection.close()
        if process.poll() is not None:
            ours, theirs = socket.socketpair()
            theirs.close()
            return ours
    raise TimeoutError(None, f"it did not connect within {CONNECT_SECONDS:g} s")


def _shows(connection: socket.socket, token: bytes) -> bool:
    """Whether the other end sends the token: any program of this machine can connect."""
    connection.settimeout(LOOK_SECONDS)
    shown = b""
    with suppress(OSError):
        while len(shown) < TOKEN_BYTES and (piece := connection.recv(TOKEN_BYTES - len(shown))):
            shown += piece
    connection.settimeout(None)
    return hmac.compare_digest(shown, token)


def connect_to_parent(first: str, second: str) -> tuple[socket.socket, int]:
    """In the child: the socket to the parent, and the descriptor that ends with it; by the words of its command line.

    Raises:
        OSError: the parent is gone.
    """
    if first != "port":
        return socket.socket(fileno=int(first)), int(second)
    token = b""
    while len(token) < TOKEN_BYTES and (piece := os.read(0, TOKEN_BYTES - len(token))):
        token += piece
    connection = socket.create_connection((LOOPBACK, int(second)))
    connection.sendall(token)
    lifeline = os.dup(0)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)  # what the function reads from its standard input is empty
    os.close(nothing)
    return connection, lifeline
