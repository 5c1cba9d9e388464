"""Progress on stderr: a Rich bar on a terminal, one plain line every few seconds otherwise."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from types import TracebackType
from typing import TYPE_CHECKING

import click

from evaltrack.evaluation.progress import Pace
from evaltrack.records.amount import count

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

    from evaltrack.records import Row

PLAIN_SECONDS = 5.0


def _run_words(run_id: str, resuming: str) -> str:
    """Said before anything is asked, so that it is there however the process ends."""
    return f"MLflow run {run_id}" + (f"; if it is stopped, go on with: {resuming}" if resuming else "")


class PlainProgress:
    """One line every few seconds: done, rate, errors, time left."""

    def __init__(self) -> None:
        self._pace = Pace()
        self._told = time.monotonic()

    def __enter__(self) -> PlainProgress:
        return self

    def __exit__(self, *exc_info: object) -> None:
        """Nothing is open."""

    def opened(self, run_id: str, resuming: str) -> None:
        """Name the run at once."""
        click.echo(_run_words(run_id, resuming), err=True)

    def start(self, total: int) -> None:
        """Start the clock."""
        self._pace.start(total)
        self._told = time.monotonic()

    def advance(self, row: Row) -> None:
        """Count a question; tell now and then."""
        self._pace.add(row)
        now = time.monotonic()
        if now - self._told >= PLAIN_SECONDS:
            self._told = now
            click.echo(", ".join(self._parts()), err=True)

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

    def note(self, phrase: str, done: int, total: int) -> None:
        """Tell now and then what is under way."""
        now = time.monotonic()
        if now - self._told >= PLAIN_SECONDS:
            self._told = now
            click.echo(f"{phrase}: {done}/{total}" if total else phrase, err=True)

    def warn(self, text: str) -> None:
        """Tell it at once."""
        click.secho(f"Warning: {text}", err=True, fg="yellow")


class BarProgress:
    """A bar with rate, errors and time left."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        self._rich: RichProgress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TextColumn("{task.fields[errors]}", style="red"),
            TextColumn("{task.fields[left]}", style="cyan"),
            console=Console(stderr=True),
            transient=True,
        )
        self._asking: TaskID | None = None
        self._other: tuple[str, TaskID] | None = None
        self._pace = Pace()

    def __enter__(self) -> BarProgress:
        self._rich.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._rich.stop()

    def opened(self, run_id: str, resuming: str) -> None:
        """Name the run above the bars."""
        from rich.text import Text

        self._rich.console.print(Text(_run_words(run_id, resuming), style="dim"), soft_wrap=True)

    def start(self, total: int) -> None:
        """Show the bar, in place of that of an earlier evaluation."""
        for task in self._rich.task_ids:
            self._rich.remove_task(task)
        self._other = None
        self._pace.start(total)
        self._asking = self._rich.add_task("asking", total=total, rate="", errors="", left="")

    def advance(self, row: Row) -> None:
        """Move the bar."""
        self._pace.add(row)
        if self._asking is not None:
            seconds_left = self._pace.seconds_left
            rate, left = "", ""
            if seconds_left is not None:
                rate, left = f"{self._pace.rate:.1f}/s", str(timedelta(seconds=round(seconds_left)))
            errors = count(self._pace.errors, "error") if self._pace.errors else ""
            self._rich.update(self._asking, advance=1, rate=rate, errors=errors, left=left)

    def note(self, phrase: str, done: int, total: int) -> None:
        """Show a second bar for what is under way besides."""
        if self._other is None or self._other[0] != phrase:
            if self._other is not None:
                self._rich.remove_task(self._other[1])
            self._other = phrase, self._rich.add_task(phrase, total=total or None, rate="", errors="", left="")
        self._rich.update(self._other[1], completed=done)

    def warn(self, text: str) -> None:
        """Tell it above the bars."""
        from rich.text import Text

        self._rich.console.print(Text(f"Warning: {text}", style="yellow"), soft_wrap=True)


def make_progress() -> PlainProgress | BarProgress:
    """The bar where stderr is a terminal, else the lines."""
    return BarProgress() if sys.stderr.isatty() else PlainProgress()
