"""The progress of several evaluations as that of one."""

from __future__ import annotations

from evaltrack.evaluation.progress import Progress
from evaltrack.records import Row


class SweepProgress:
    """A `Progress` that counts the questions of all evaluations, and starts once."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress, self._total, self._is_started = progress, total, False
        self.label = ""

    def start(self, total: int) -> None:  # noqa: ARG002 - that of one evaluation
        """Start at the first evaluation, with the questions of all."""
        if not self._is_started:
            self._is_started = True
            self._progress.start(self._total)

    def advance(self, row: Row) -> None:
        """One question finished."""
        self._progress.advance(row)

    def note(self, phrase: str, done: int, total: int) -> None:
        """Something else is under way."""
        self._progress.note(phrase, done, total)

    def warn(self, text: str) -> None:
        """Something of one evaluation is likely wrong."""
        self._progress.warn(f"{self.label}: {text}" if self.label else text)
