"""The error of a file of rows that cannot be used, which names the run, what is wrong and the cure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from evaltrack.errors import TrackingError
from evaltrack.rows.columns import ROWS_VERSION

CURE = "restore the file, or evaluate again"


class DamagedError(Exception):
    """The rows are not those of an evaluation; the message says what is wrong."""


class RowsError(TrackingError):
    """A file of rows cannot be used. `name` is the file's, `problem` a predicate."""

    def __init__(self, name: str, problem: str, cure: str = CURE, run_id: str | None = None) -> None:
        self.name, self.problem, self.cure = name, problem, cure
        super().__init__(f"{name}{f' of run {run_id}' if run_id else ''} {problem}; {cure}")


@contextmanager
def rows_of_run(run_id: str | None) -> Iterator[None]:
    """What is wrong with rows that are read here is said of this run."""
    try:
        yield
    except RowsError as error:
        raise RowsError(error.name, error.problem, error.cure, run_id) from None


def damaged(name: str, what: str) -> RowsError:
    """The error of a file that is damaged, or of another program."""
    return RowsError(name, f"is damaged, or was not written by evaltrack: {what}")


def newer(name: str, version: int, run_id: str | None = None) -> RowsError:
    """The error of a file that a version to come wrote."""
    own = f"rows of version {version}, and this one reads version {ROWS_VERSION}"
    return RowsError(name, f"was written by a newer version of evaltrack ({own})", "upgrade evaltrack", run_id)
