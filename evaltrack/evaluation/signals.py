"""Ctrl-C, SIGTERM and a closed terminal, so that a stopped run always ends as KILLED with what was done.

The first signal asks: the questions in flight are finished and no other is begun. A second one while they are raises
`KeyboardInterrupt`; what follows the first within `ONE_STOP` seconds is the same stop (`mlflow run` passes Ctrl-C on as
a second signal). While results are being logged a signal never raises: a database can stay locked where a transaction
is broken off.
"""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

ONE_STOP = 2.0
SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))


class Stop:
    """Whether the run was asked to stop. Handles signals inside `handled()`, in the main thread only."""

    def __init__(self) -> None:
        self.asked = False
        self._last = -ONE_STOP
        self._logging = False

    @contextmanager
    def handled(self) -> Iterator[None]:
        """Take the signals over, and give them back at the end."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        before = {number: signal.signal(number, self._take) for number in SIGNALS}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def log_from_now_on(self) -> None:
        """From now on a signal only sets `asked`."""
        self._logging = True

    def _take(self, _number: int, _frame: FrameType | None) -> None:
        now = time.monotonic()
        same, self._last = now - self._last < ONE_STOP, now
        again, self.asked = self.asked, True
        if same:
            return
        if again and not self._logging:
            raise KeyboardInterrupt
        what = "what was done is logged" if self._logging else "questions in flight are finished; Ctrl-C again: now"
        print(f"Stopping: {what}", file=sys.stderr, flush=True)
