"""Shows the progress of an evaluation: a tqdm bar in a notebook or a terminal, else a line every few seconds."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias

from evaltrack.evaluation.loop import Progress
from evaltrack.records import Row
from evaltrack.records.base import count

if TYPE_CHECKING:
    from tqdm import tqdm

ProgressChoice: TypeAlias = Progress | bool | None
"""The receiver of progress; True is a bar, or lines outside a terminal, False nothing, None a bar in a notebook."""

LINE_SECONDS = 5.0
LINE = "{desc}: {n_fmt}/{total_fmt}{unit}, {rate_fmt}{postfix}, {remaining} left"


class Lines:
    """A stream for tqdm that writes each state of a bar to stderr as a line of its own."""

    def write(self, text: str) -> None:
        """Write the text without what redraws a bar in its place."""
        if line := text.strip():
            print(line, file=sys.stderr, flush=True)


class ProgressBar(Progress):
    """A bar of the questions, or a line every few seconds, with the number of errors and the current step."""

    def __init__(self) -> None:
        self._bar: tqdm[Row] | None = None
        self._drawn = ""
        self._errors = 0
        self._draws = in_notebook() or sys.stderr.isatty()

    def opened(self, run_id: str, resuming: str) -> None:
        """Name the run before any question is asked, so that it is seen however the process ends."""
        self._write(f"MLflow run {run_id}" + (f"; to resume after an interruption: {resuming}" if resuming else ""))

    def start(self, total: int) -> None:
        """Draw the bar, instead of that of an earlier evaluation."""
        self.close()
        self._errors = 0
        self._draw("evaltrack", total, " questions")

    def _draw(self, name: str, total: int, unit: str) -> None:
        from tqdm.auto import tqdm

        self._drawn = name
        style: dict[str, Any] = {"dynamic_ncols": True}
        if not self._draws:
            seconds = {"mininterval": LINE_SECONDS, "miniters": 0, "delay": LINE_SECONDS}
            style = {"file": Lines(), "bar_format": LINE, "leave": False, **seconds}
        self._bar = tqdm(total=total, desc=name, unit=unit, **style)

    def advance(self, row: Row) -> None:
        """Move the bar."""
        if self._bar is not None:
            if row.error:
                self._errors += 1
                self._bar.set_postfix_str(count(self._errors, "error"), refresh=False)
            self._bar.update()

    def note(self, phrase: str, done: int, total: int) -> None:
        """Write the current step after the bar, or draw a bar of it if no question is being asked."""
        if self._bar is None and total:
            self._draw(phrase, total, "")
        if self._bar is None:
            return
        if phrase != self._drawn:
            self._bar.set_postfix_str(f"{phrase} {done}/{total}" if total else phrase, refresh=self._draws)
        self._bar.update(done - self._bar.n if phrase == self._drawn else 0)

    def warn(self, text: str) -> None:
        """Write a line above the bar."""
        self._write(f"Warning: {text}")

    def _write(self, text: str) -> None:
        from tqdm import tqdm

        tqdm.write(text, file=sys.stderr)

    def close(self) -> None:
        """Close the bar, which stays visible."""
        if self._bar is not None:
            self._bar.set_postfix_str(count(self._errors, "error") if self._errors else "", refresh=self._draws)
            self._bar.close()
            self._bar = None


@contextmanager
def shown_progress(choice: ProgressChoice) -> Iterator[Progress]:
    """Yield the receiver of the progress. A bar is closed at the end."""
    if choice is True or (choice is None and in_notebook()):
        with closing(ProgressBar()) as bar:
            yield bar
    else:
        yield choice or Progress()


def in_notebook() -> bool:
    """Return True if this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and hasattr(shell, "kernel")
