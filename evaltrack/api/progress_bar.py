"""Shows the progress of an evaluation: a tqdm bar in a notebook or a terminal, else a line every few seconds."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeAlias

from evaltrack.evaluation.loop import Pace, Progress, Silent
from evaltrack.records import Row
from evaltrack.records.amount import count

if TYPE_CHECKING:
    from tqdm import tqdm

ProgressChoice: TypeAlias = Progress | bool | None
"""The receiver of progress; True is a bar, or lines outside a terminal, False nothing, None a bar in a notebook."""


PLAIN_SECONDS = 5.0


def _opened(run_id: str, resuming: str) -> str:
    """Return the first message, written before any question so that it is seen however the process ends."""
    return f"MLflow run {run_id}" + (f"; to resume after an interruption: {resuming}" if resuming else "")


class BarOfTqdm:
    """A progress bar of the questions, followed by the number of errors and the current step."""

    def __init__(self) -> None:
        self._bar: tqdm[Row] | None = None
        self._pace = Pace()
        self._drawn = ""

    def opened(self, run_id: str, resuming: str) -> None:
        """Name the run above the bar."""
        self._write(_opened(run_id, resuming))

    def start(self, total: int) -> None:
        """Draw the bar, instead of that of an earlier evaluation."""
        self.close()
        self._pace.start(total)
        self._draw("evaltrack", total, " questions")

    def _draw(self, name: str, total: int, unit: str) -> None:
        if in_notebook() and find_spec("ipywidgets"):
            from tqdm.notebook import tqdm
        else:
            from tqdm import tqdm
        self._drawn = name
        self._bar = tqdm(total=total, desc=name, unit=unit, dynamic_ncols=True, smoothing=0)

    def advance(self, row: Row) -> None:
        """Move the bar."""
        if self._bar is not None:
            self._bar.initial += self._pace.add(row)  # rows of an earlier run are not part of the speed
            if row.failure is not None:
                self._bar.set_postfix_str(count(self._pace.errors, "error"), refresh=False)
            self._bar.update()

    def note(self, phrase: str, done: int, total: int) -> None:
        """Write the current step after the bar, or draw a bar of it if no question is being asked."""
        if self._bar is None and total:
            self._draw(phrase, total, "")
        if self._bar is None:
            return
        if phrase == self._drawn:
            self._bar.update(done - self._bar.n)
        else:
            self._bar.set_postfix_str(f"{phrase} {done}/{total}" if total else phrase)

    def warn(self, text: str) -> None:
        """Write a line above the bar."""
        self._write(f"Warning: {text}")

    def _write(self, text: str) -> None:
        from tqdm import tqdm

        tqdm.write(text, file=sys.stderr)

    def close(self) -> None:
        """Close the bar, which stays visible."""
        if self._bar is not None:
            self._bar.set_postfix_str(count(self._pace.errors, "error") if self._pace.errors else "")
            self._bar.close()
            self._bar = None


class PlainProgress:
    """A line every few seconds: finished questions, rate, errors, time left."""

    def __init__(self) -> None:
        self._pace = Pace()
        self._told = time.monotonic()

    def opened(self, run_id: str, resuming: str) -> None:
        """Write the run's id at once."""
        self._write(_opened(run_id, resuming))

    def start(self, total: int) -> None:
        """Start the clock."""
        self._pace.start(total)
        self._told = time.monotonic()

    def advance(self, row: Row) -> None:
        """Count a question, and write a line if one is due."""
        self._pace.add(row)
        if self._is_due():
            self._write(", ".join(self._parts()))

    def note(self, phrase: str, done: int, total: int) -> None:
        """Write the current step if a line is due."""
        if self._is_due():
            self._write(f"{phrase}: {done}/{total}" if total else phrase)

    def warn(self, text: str) -> None:
        """Write the warning at once."""
        self._write(f"Warning: {text}")

    def _write(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)

    def _is_due(self) -> bool:
        now = time.monotonic()
        is_due = now - self._told >= PLAIN_SECONDS
        if is_due:
            self._told = now
        return is_due

    def _parts(self) -> Iterator[str]:
        pace = self._pace
        seconds_left = pace.seconds_left
        yield f"{pace.done}/{count(pace.total, 'question')}"
        if pace.earlier:
            yield f"{pace.earlier} from before"
        if seconds_left is not None:
            yield f"{pace.rate:.1f}/s"
        yield count(pace.errors, "error")
        if seconds_left is not None:
            yield f"{seconds_left:.0f} s left"


@contextmanager
def shown_progress(choice: ProgressChoice) -> Iterator[Progress]:
    """Yield the receiver of the progress. A bar is closed at the end."""
    if not (choice is True or (choice is None and in_notebook())):
        yield choice or Silent()
    elif not (in_notebook() or sys.stderr.isatty()):
        yield PlainProgress()
    else:
        bar = BarOfTqdm()
        try:
            yield bar
        finally:
            bar.close()


def in_notebook() -> bool:
    """Return True if this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and hasattr(shell, "kernel")
