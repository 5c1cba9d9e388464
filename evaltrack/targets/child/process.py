"""One child process: started, listened to, and ended together with all that it started."""

from __future__ import annotations

import io
import json
import os
import sys
import threading
from codecs import getincrementaldecoder
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from evaltrack.errors import Guide, UsageError
from evaltrack.system.channel import start_connected
from evaltrack.system.processes import kill_group
from evaltrack.targets.child.frames import CALL, READY, BrokenFrameError, Frame, FrameReader, frame
from evaltrack.targets.failures import ending

BOOTSTRAP = (
    "import sys; arguments = sys.argv; sys.argv = ['evaltrack']; sys.path[:] = arguments[3:]; "
    "from evaltrack.targets.child.server import main; main(*arguments[1:3])"
)
"""It searches the same folders for modules as the parent does."""

PIECE = 1 << 16
LAST_WORDS = 500
"""Characters shown of the end of what a process wrote."""

DRAIN_SECONDS = 1.0
"""How long the output of a process that ended is waited for, which another may hold open."""


@dataclass(frozen=True)
class Order:
    """What a child process serves: the user's function `place`, made to answer calls by `opener`.

    Both are written ``package.module:name``. `memory` is in bytes. `store` is the MLflow store of the run, where it is
    not the one that its environment leads to.
    """

    place: str
    opener: str
    memory: int | None = None
    store: str | None = None


class Process:
    """A process that was started. Its output is passed on to this program's stderr.

    Raises:
        OSError: it cannot be started.
    """

    def __init__(self, order: Order) -> None:
        self._output, output = os.pipe()
        try:
            child = start_connected([sys.executable, "-P", "-c", BOOTSTRAP], list(map(str, sys.path)), output)
        except BaseException:
            os.close(self._output)
            raise
        finally:
            os.close(output)
        self._process, self.socket = child.process, child.socket
        self.code: int | None = None
        self.facts: dict[str, Any] = {}
        self.ended = threading.Event()
        self._lock, self._callbacks = threading.Lock(), list[Callable[[], object]]()
        self._lifeline, self._tail = child.lifeline, ""
        self._relay = threading.Thread(target=self._pass_on, daemon=True, name="evaltrack-output")
        self._relay.start()
        threading.Thread(target=self._wait, daemon=True, name="evaltrack-child").start()
        with suppress(OSError):  # one that ended already is seen by who waits for it
            self.socket.sendall(frame(CALL, 0, json.dumps(asdict(order)).encode()))

    def wait_until_ready(self, what: str, seconds: float | None = None) -> None:
        """Wait until the function is imported, for at most so many seconds; `what` names it in errors.

        Raises:
            UsageError: it cannot be, or the process ended meanwhile; it is killed and its socket closed.
        """
        try:
            self.socket.settimeout(seconds)
            answer = self._first_message()
            if answer is None:
                if not self.ended.wait(seconds and DRAIN_SECONDS):
                    raise UsageError(f"{what}: its process was not ready within {seconds:g} s")
                raise UsageError(f"{what}: its process {self.ending}; see what it wrote above")
            if answer.kind != READY:
                problem = json.loads(answer.payload)
                raise UsageError(problem["text"], guide=next((g for g in Guide if g == problem["guide"]), None))
            self.facts = json.loads(answer.payload)
        except BaseException:
            self.kill()
            self.socket.close()
            raise

    def _first_message(self) -> Frame | None:
        """What the process sends first; None where it ends before."""
        reader = FrameReader()
        with suppress(OSError, BrokenFrameError):
            while data := self.socket.recv(PIECE):
                for message in reader.feed(data):
                    return message
        return None

    @property
    def ending(self) -> str:
        """How it ended, with the end of what it wrote where it gave an exit code: a signal leaves no words."""
        code = self.code or 0
        words = " ".join(self._tail.split())[-LAST_WORDS:] if code > 0 else ""
        return ending(code) + (f"; its output ends with `{words}`" if words else "")

    def kill(self) -> None:
        """End it now, and with it the processes of its group."""
        kill_group(self._process.pid)

    def abandon(self) -> None:
        """Kill it, and close its socket once nobody listens to it any more."""
        self.kill()
        self.when_ended(self.socket.close)

    def end(self, seconds: float) -> None:
        """Wait for at most so many seconds until it has ended by itself, and kill what is left."""
        self.ended.wait(seconds)
        self.kill()
        self.ended.wait(2 * DRAIN_SECONDS)

    def when_ended(self, callback: Callable[[], object]) -> None:
        """Call `callback`, from any thread, once it has ended; at once where it has."""
        with self._lock:
            if not self.ended.is_set():
                self._callbacks.append(callback)
                return
        callback()

    def _wait(self) -> None:
        self.code = self._process.wait()
        self.kill()  # the processes that it left behind
        self._relay.join(DRAIN_SECONDS)
        os.close(self._lifeline)
        with self._lock:
            self.ended.set()
        for callback in self._callbacks:
            callback()

    def _pass_on(self) -> None:
        """Write what the process writes to stderr, whole characters at a time, whatever stderr is by then."""
        decode = getincrementaldecoder("utf-8")("replace").decode
        with io.FileIO(self._output) as output:
            while data := output.read(PIECE):
                text = decode(data)
                self._tail = (self._tail + text)[-PIECE:]
                with suppress(Exception):  # the reader may be gone
                    sys.stderr.write(text)
                    sys.stderr.flush()
