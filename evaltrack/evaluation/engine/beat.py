"""What a worker does beside its event loop: look whether to stop, say how far it is, have its rows seen by others."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

from evaltrack.evaluation.engine.folder import WorkFolder
from evaltrack.evaluation.engine.part_journal import PartJournal
from evaltrack.records import Row

COUNT_SECONDS = 1.0
"""Between two writes of how many rows are done."""


class Beat:
    """A thread that speaks to the shared folder while a part is asked; a store that answers late holds up nobody."""

    def __init__(self, folder: WorkFolder, part: int, journal: PartJournal) -> None:
        self.num_rows = 0
        self._folder, self._part, self._journal = folder, part, journal
        self._stopping = folder.is_to_stop
        self._error: Exception | None = None
        self._ended = threading.Event()
        self._written, self._written_at = 0, time.monotonic()
        self._thread = threading.Thread(target=self._run, name="evaltrack-beat", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        if self._error is not None and error is None:
            raise self._error

    def add(self, _row: Row) -> None:
        """A row is done."""
        self.num_rows += 1

    def is_to_stop(self) -> bool:
        """Whether to begin no other question."""
        return self._stopping or self._error is not None or self._journal.fault is not None

    def _run(self) -> None:
        try:
            while not self._ended.wait(self._folder.files.look_seconds):
                self._journal.share()
                self._stopping = self._stopping or self._folder.is_to_stop or self._journal.is_taken_over
                self._count()
        except Exception as error:  # noqa: BLE001 - raised again where the thread was started
            self._error = error

    def _count(self) -> None:
        number, now = self.num_rows, time.monotonic()
        if number != self._written and now - self._written_at > COUNT_SECONDS:
            self._written, self._written_at = number, now
            self._folder.write_num_asked(self._part, number)
