"""How far an evaluation is, in a tag of its run: what the pages show while it goes on."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

from evaltrack.tracking.store import Store

PROGRESS = "evaltrack.progress"

SECONDS = 10.0
"""Between two writes, and before the first: an evaluation that is over by then writes none."""

_log = logging.getLogger(__name__)


class ProgressTag:
    """Counts finished questions and writes the tag now and then, beside the evaluation, which it cannot end."""

    def __init__(self, store: Store, run_id: str, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._store, self._run_id, self._total, self._clock = store, run_id, total, clock
        self._done, self._written_at = 0, clock()
        self._thread: threading.Thread | None = None

    def add(self) -> None:
        """Count a finished question."""
        self._done += 1
        if self._clock() - self._written_at < SECONDS or (self._thread is not None and self._thread.is_alive()):
            return
        self._written_at = self._clock()
        text = f"{self._done}/{self._total}"
        self._thread = threading.Thread(target=self._write, args=(text,), name="evaltrack-progress", daemon=True)
        self._thread.start()

    def _write(self, text: str) -> None:
        try:
            self._store.client.set_tag(self._run_id, PROGRESS, text)
        except Exception:
            _log.debug("the progress of run %s was not noted", self._run_id, exc_info=True)

    def close(self) -> None:
        """Wait for a write that is under way, for a little."""
        if self._thread is not None:
            self._thread.join(SECONDS)
