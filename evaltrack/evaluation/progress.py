"""What an evaluation tells while it goes on."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from evaltrack.records import Row


class Progress(Protocol):
    """Receives the progress of an evaluation. All calls come from one thread."""

    def start(self, total: int) -> None:
        """The run is open and `total` questions are about to be asked."""

    def advance(self, row: Row) -> None:
        """One question finished."""

    def note(self, phrase: str, done: int, total: int) -> None:
        """Something else is under way; `total` is 0 where it is not known."""

    def warn(self, text: str) -> None:
        """Something is likely wrong; said once, while there is time to stop."""


@runtime_checkable
class RunProgress(Protocol):
    """What a `Progress` may have besides."""

    def opened(self, run_id: str, resuming: str) -> None:
        """A run is open, and nothing is asked yet; `resuming` is the command that goes on with it, if one can."""


class Silent:
    """A `Progress` that says nothing."""

    def start(self, total: int) -> None:
        """Say nothing."""

    def advance(self, row: Row) -> None:
        """Say nothing."""

    def note(self, phrase: str, done: int, total: int) -> None:
        """Say nothing."""

    def warn(self, text: str) -> None:
        """Say nothing."""
