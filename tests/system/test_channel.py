"""The socket between a process and its child: with descriptors that are inherited, and over a port of this machine."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaltrack.system import channel
from evaltrack.system.channel import Connected, start_connected

CHILD = """
import os, sys
from evaltrack.system.channel import connect_to_parent
connection, lifeline = connect_to_parent(*sys.argv[1:3])
connection.sendall(connection.recv(100).upper() + sys.argv[3].encode() + sys.stdin.read().encode())
os.read(lifeline, 1)
sys.exit(7)
"""


@pytest.fixture(params=["descriptors", "port"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How the child is reached; without `os.fork`, as on Windows, over a port."""
    if request.param == "port":
        monkeypatch.delattr("os.fork")
    return request.param


@pytest.fixture
def output() -> Iterator[int]:
    """Where the child writes: to our own stderr."""
    descriptor = os.dup(2)
    yield descriptor
    os.close(descriptor)


def open_descriptors() -> int:
    """How many this process has."""
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def leave(child: Connected) -> int:
    """The exit code of a child whose lifeline is cut."""
    os.close(child.lifeline)
    child.socket.close()
    return child.process.wait(10)


@pytest.mark.usefixtures("way")
def test_both_ends_talk_and_the_child_sees_the_end(output: int) -> None:
    """Its standard input is empty; the lifeline ends when the parent closes it."""
    child = start_connected([sys.executable, "-P", "-c", CHILD], ["!"], output)
    child.socket.sendall(b"hello")
    assert child.socket.recv(100) == b"HELLO!"
    assert child.process.poll() is None
    assert leave(child) == 7


@pytest.mark.usefixtures("way")
def test_a_child_that_ends_at_once(output: int) -> None:
    """Its socket is at its end."""
    child = start_connected([sys.executable, "-c", "raise SystemExit(3)"], [], output)
    assert child.socket.recv(1) == b""
    assert leave(child) == 3


@pytest.mark.usefixtures("way")
def test_a_program_that_is_not_there(output: int) -> None:
    """Nothing is left open."""
    before = open_descriptors()
    with pytest.raises(FileNotFoundError):
        start_connected(["/no/such/program"], [], output)
    assert open_descriptors() == before


def test_whoever_lacks_the_token_is_refused() -> None:
    """Any program of this machine can connect first."""
    with (
        socket.create_server((channel.LOOPBACK, 0)) as listener,
        subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process,
        socket.create_connection(listener.getsockname()) as stranger,
        socket.create_connection(listener.getsockname()) as child,
    ):
        stranger.sendall(b"?" * channel.TOKEN_BYTES)
        child.sendall(b"!" * channel.TOKEN_BYTES)
        with channel._accepted(listener, b"!" * channel.TOKEN_BYTES, process) as connection:
            connection.sendall(b"hello")
            assert child.recv(5) == b"hello"
            assert stranger.recv(1) == b""
        process.communicate(b"\n")


def test_a_child_that_never_connects(monkeypatch: pytest.MonkeyPatch, output: int) -> None:
    """It is ended after a while, and none of its descriptors is left."""
    monkeypatch.delattr("os.fork")
    monkeypatch.setattr(channel, "CONNECT_SECONDS", 0.3)
    monkeypatch.setattr(channel, "LOOK_SECONDS", 0.1)
    before = open_descriptors(), threading.active_count()
    with pytest.raises(TimeoutError, match=r"did not connect within 0\.3 s"):
        start_connected([sys.executable, "-c", "import time; time.sleep(60)"], [], output)
    assert (open_descriptors(), threading.active_count()) == before
