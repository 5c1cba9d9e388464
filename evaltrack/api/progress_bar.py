"""The progress of an evaluation as a bar of tqdm: the widget of a notebook, or a line of text."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeAlias

from evaltrack.evaluation.progress import Pace, Progress
from evaltrack.records import Row
from evaltrack.records.amount import count

if TYPE_CHECKING:
    from tqdm import tqdm

ProgressChoice: TypeAlias = Progress | bool | None
"""What receives progress; True is a bar, False nothing, None a bar in a notebook."""


class BarOfTqdm:
    """Draws a bar of the questions, with the errors so far and what is under way after them."""

    def __init__(self) -> None:
        self._bar: tqdm[Row] | None = None
        self._pace = Pace()

    def start(self, total: int) -> None:
        """Draw the bar, in place of that of an earlier evaluation."""
        self.close()
        self._pace.start(total)
        if in_notebook() and find_spec("ipywidgets"):
            from tqdm.notebook import tqdm
        else:
            from tqdm import tqdm
        self._bar = tqdm(total=total, desc="evaltrack", unit=" questions", dynamic_ncols=True, smoothing=0)

    def advance(self, row: Row) -> None:
        """Move the bar."""
        if self._bar is not None:
            self._bar.initial += self._pace.add(row)  # which its speed does not count
            if row.failure is not None:
                self._bar.set_postfix_str(count(self._pace.errors, "error"), refresh=False)
            self._bar.update()

    def note(self, phrase: str, done: int, total: int) -> None:
        """Write beside the bar what is under way."""
        if self._bar is not None:
            self._bar.set_postfix_str(f"{phrase} {done}/{total}" if total else phrase)

    def warn(self, text: str) -> None:
        """Write a line above the bar."""
        from tqdm import tqdm

        tqdm.write(f"Warning: {text}", file=sys.stderr)

    def close(self) -> None:
        """Leave the bar as it is."""
        if self._bar is not None:
            self._bar.set_postfix_str(count(self._pace.errors, "error") if self._pace.errors else "")
            self._bar.close()
            self._bar = None


@contextmanager
def shown_progress(choice: ProgressChoice) -> Iterator[Progress | None]:
    """What receives the progress, by choice; a bar is closed at the end."""
    if not (choice is True or (choice is None and in_notebook())):
        yield None if isinstance(choice, bool) else choice
        return
    bar = BarOfTqdm()
    try:
        yield bar
    finally:
        bar.close()


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and hasattr(shell, "kernel")
