"""Ctrl-C, SIGTERM, a closed terminal and what else ends a process, so that a stopped run ends as KILLED with its rows.

The first signal asks: the questions in flight are finished and no other is begun. A second one while they are raises
`KeyboardInterrupt`; one that follows the first within `ONE_STOP` seconds is the same stop (`mlflow run` passes Ctrl-C
on as a second signal), a third one never is. While results are being logged a signal never raises: a database can stay
locked where a transaction is broken off. SIGQUIT and what cannot be handled end the process at once.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

ONE_STOP = 1.0
STOPS = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")
"""Those that the system has: SIGBREAK is the Ctrl-Break of Windows."""

OTHERS = ("SIGALRM", "SIGUSR1", "SIGUSR2", "SIGXCPU", "SIGVTALRM", "SIGPOLL", "SIGPWR")
"""Signals that end a process by default; a program that handles or ignores one itself keeps doing so."""


class Stop:
    """Whether the run was asked to stop. Handles signals inside `handled()`, in the main thread only."""

    def __init__(self) -> None:
        self.is_requested = False
        self._first, self._signals = 0.0, 0
        self._logging = False

    @contextmanager
    def handled(self) -> Iterator[None]:
        """Take the signals over, and give them back at the end."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._take) for number in stop_signals()}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, signal.SIG_DFL if handler is None else handler)  # None: it was not Python's

    def log_from_now_on(self) -> None:
        """From now on a signal only sets `is_requested`."""
        self._logging = True

    def _take(self, _number: int, _frame: FrameType | None) -> None:
        self._signals += 1
        if not self.is_requested:
            self.is_requested, self._first = True, time.monotonic()
        elif self._signals == 2 and time.monotonic() - self._first < ONE_STOP:
            return
        elif not self._logging:
            raise KeyboardInterrupt
        what = "what was done is logged" if self._logging else "questions in flight are finished; Ctrl-C again: now"
        with suppress(RuntimeError, OSError, ValueError):  # it came in the middle of a write, or nothing can be written
            print(f"Stopping: {what}", file=sys.stderr, flush=True)


def stop_signals() -> list[signal.Signals]:
    """The signals that stop a run; `nohup` ignores SIGHUP, and so does the run."""
    stops, others = ([getattr(signal, name) for name in names if hasattr(signal, name)] for names in (STOPS, OTHERS))
    heeded = [number for number in stops if number == signal.SIGINT or signal.getsignal(number) != signal.SIG_IGN]
    return heeded + [number for number in others if signal.getsignal(number) == signal.SIG_DFL]
