"""Inside a child process: the calls that come over its socket."""

from __future__ import annotations

import asyncio
import socket
import threading

import pytest

from evaltrack.targets.child.frames import CALL, RESULT, FrameReader, frame
from evaltrack.targets.child.server import _Server


class LoopOfWindows(asyncio.SelectorEventLoop):
    """An event loop that cannot wait for sockets."""

    def add_reader(self, *_arguments: object) -> None:
        raise NotImplementedError


def test_a_loop_that_cannot_wait_for_sockets(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread reads for it; the server ends when the socket does."""

    async def answer(payload: bytes) -> bytes:
        await asyncio.sleep(0)
        return payload.upper()

    monkeypatch.setattr(asyncio, "new_event_loop", LoopOfWindows)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        server = _Server(theirs, FrameReader(), answer)
        thread = threading.Thread(target=server.run)
        thread.start()
        ours.sendall(frame(CALL, 1, b"hello"))
        (result,) = FrameReader().feed(ours.recv(100))
        assert (result.kind, result.number, result.payload) == (RESULT, 1, b"HELLO")
        ours.shutdown(socket.SHUT_WR)
        thread.join(5)
        assert not thread.is_alive()
        server._loop.close()
