"""On the driver: the rows of all parts, in the order of the golden set, for the code that finishes any run."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, suppress

from evaltrack.errors import EvaltrackError, TrackingError
from evaltrack.evaluation.engine.folder import WorkFolder, rows_name
from evaltrack.evaluation.engine.orders import Manifest, Part, Receipt
from evaltrack.evaluation.engine.part_file import read_lines
from evaltrack.evaluation.engine.part_journal import part_journal
from evaltrack.evaluation.engine.plan import questions_of
from evaltrack.evaluation.journal_lines import Line, any_row_in
from evaltrack.records import Row


class RowsInOrder:
    """Hands on the rows of each part once those of all parts before it were."""

    def __init__(self, folder: WorkFolder, manifest: Manifest, rounds: int, take: Callable[[Row], object]) -> None:
        self._folder, self._parts, self._rounds, self._take = folder, manifest.parts, rounds, take
        self._receipts: dict[int, Receipt] = {}
        self._next = 0

    def add(self, receipt: Receipt) -> None:
        """A part is done.

        Raises:
            TrackingError: its file does not hold its rows.
        """
        self._receipts[receipt.part] = receipt
        while (due := self._receipts.pop(self._next, None)) is not None:
            part = self._parts[self._next]
            self._next += 1  # what is broken off in the middle is not handed on twice
            for row in rows_of(self._folder, part, due):
                self._take(row)

    def rest(self) -> None:
        """Hand on what there is of the parts that are left, where the run was broken off."""
        begun = set[int]()
        with suppress(EvaltrackError):
            begun = self._folder.begun()
        for part in self._parts[self._next :]:
            self._next = part.number + 1
            receipt = self._receipts.pop(part.number, None)
            with suppress(EvaltrackError):  # what cannot be read now is there when the run goes on
                if receipt or part.number in begun:
                    for row in rows_of(self._folder, part, receipt) if receipt else self._unfinished(part):
                        self._take(row)

    def _unfinished(self, part: Part) -> Iterator[Row]:
        with closing(part_journal(self._folder, part.number)) as journal:
            questions = questions_of(self._folder, part)
            rounds = range(1, self._rounds + 1)
            for line in journal.lines(questions, lambda _: rounds):
                if (row := any_row_in(line[4].encode(), line[5])) is not None:
                    yield row


def rows_of(folder: WorkFolder, part: Part, receipt: Receipt) -> Iterator[Row]:
    """The rows of a part that is done.

    Raises:
        TrackingError: its file does not hold them.
    """
    number = 0
    for line in lines_of(folder, part.number):
        row = any_row_in(line[4].encode(), line[5])
        if row is None or not part.first <= row.position < part.first + part.questions:
            raise _damaged(folder, part.number, "a row is not as it was written")
        number += 1
        yield row
    if number != receipt.rows:
        raise _damaged(folder, part.number, f"{number:,} rows instead of {receipt.rows:,}")


def lines_of(folder: WorkFolder, part: int) -> Iterator[Line]:
    """The lines of a part that is done.

    Raises:
        TrackingError: its file cannot be read.
    """
    import pyarrow as pa

    try:
        with folder.files.open(rows_name(part)) as file:
            yield from read_lines(file)
    except (OSError, pa.ArrowException) as error:
        raise _damaged(folder, part, str(error)) from None


def _damaged(folder: WorkFolder, part: int, why: str) -> TrackingError:
    folder.forget_receipt(part)  # its journal is still there
    return TrackingError(f"{folder}/{rows_name(part)}: is damaged ({why})")
