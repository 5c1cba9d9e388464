"""The server's side of `warm_worker`: it is started when somebody looks at our pages, and makes pages from then on."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from typing import IO

from evaltrack.server.warm_worker import TIMED_OUT

STARTING = 30.0
"""Seconds that its imports may take on a busy machine, beside those of a page."""


class WarmProcess:
    """At most one such process. It needs Linux: elsewhere libraries are not made for being forked."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._door: socket.socket | None = None

    def start(self) -> None:
        """Have it import what pages need, in the background, if it does not live."""
        with self._lock:
            if sys.platform == "linux" and (self._process is None or self._process.poll() is not None):
                self._close()
                self._door, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                with other:
                    self._process = subprocess.Popen(
                        [sys.executable, "-P", "-m", "evaltrack.server.warm_worker"],
                        stdin=other.fileno(),
                        stdout=subprocess.DEVNULL,
                        env=dict(self._environment),
                    )

    def make(self, arguments: list[str], seconds: int, files: tuple[IO[bytes], IO[bytes], IO[bytes]]) -> int | None:
        """The exit code of a page's process with these arguments, input, output and error output; None without one.

        Raises:
            subprocess.TimeoutExpired: it was not ready in time.
        """
        self.start()
        with ExitStack() as stack:
            reading, writing = os.pipe()
            stack.callback(os.close, reading)
            try:
                self._send(arguments, [*(each.fileno() for each in files), writing])
            except OSError:
                return None
            finally:
                os.close(writing)
            ready, _, _ = select.select([reading], [], [], seconds + STARTING)
            answer = os.read(reading, 100).decode() if ready else TIMED_OUT
        if answer == TIMED_OUT:
            raise subprocess.TimeoutExpired(arguments, seconds)
        return int(answer) if answer else None

    def _send(self, arguments: list[str], descriptors: list[int]) -> None:
        with self._lock:
            if self._door is None:
                raise ConnectionError
            socket.send_fds(self._door, [" ".join(arguments).encode()], descriptors)

    def close(self) -> None:
        """End it."""
        with self._lock:
            self._close()

    def _close(self) -> None:
        if self._door is not None:
            self._door.close()
            self._door = None
        if self._process is not None:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(5)
            self._process = None
