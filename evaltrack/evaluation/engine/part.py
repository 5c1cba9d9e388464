"""The work of a worker: one part asked, judged and written to the shared folder."""

from __future__ import annotations

import os
import socket
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

from evaltrack import __version__
from evaltrack.errors import EvaltrackError, InconclusiveError, UsageError
from evaltrack.evaluation.engine.folder import WorkFolder
from evaltrack.evaluation.engine.orders import Fault, Order, PartEnd, Receipt
from evaltrack.evaluation.engine.part_file import write_lines
from evaltrack.evaluation.engine.part_journal import LOOK_SECONDS, part_journal
from evaltrack.evaluation.engine.plan import questions_of
from evaltrack.evaluation.engine.worker import worker_of
from evaltrack.evaluation.journal import Journal
from evaltrack.records import Question, Row
from evaltrack.system.files import replace_file

COUNT_SECONDS = 1.0
"""Between two writes of how many rows are done."""
TRACEBACK_LINES = 3


def run_part(order: str, environment: Mapping[str, str]) -> str:
    """Ask the questions of one part and write its rows and its receipt; what was done of it before is not done again.

    `order` is an `Order` as JSON, `environment` holds variables that the driver has and the worker may lack. Gives a
    `PartEnd` as JSON: a fault is data, so that it reaches the driver whole.
    """
    own = Order.model_validate_json(order)
    number = own.part.number
    folder = WorkFolder(Path(own.folder))
    try:
        receipt = folder.receipt(number) or _run(own, environment)
        end = PartEnd(part=number, receipt=receipt)
    except EvaltrackError as error:
        end = PartEnd(part=number, fault=Fault.of(error))
    except Exception as error:  # noqa: BLE001 - of whatever kind: the driver says it, and ends the run
        last = " ".join(line.strip() for line in traceback.format_exc().splitlines()[-TRACEBACK_LINES:])
        what = f"part {number} failed on {worker_name()}: {type(error).__name__}: {error} ({last})"
        end = PartEnd(part=number, fault=Fault(kind="InconclusiveError", message=what))
    if end.fault is not None:  # the run ends; the driver may hear of it later than the others
        folder.ask_to_stop()
    return end.model_dump_json()


def worker_name() -> str:
    """This process, among all machines."""
    return f"{socket.gethostname()}:{os.getpid()}"


def _run(order: Order, environment: Mapping[str, str]) -> Receipt | None:
    """The receipt of a part; None where it was stopped before its end, and its journal holds what was done."""
    if order.version != __version__:
        here = f"evaltrack {__version__} is installed on the worker {socket.gethostname()} ({sys.prefix})"
        raise UsageError(f"{here}, and {order.version} where the run was started; install the same version")
    folder, part = WorkFolder(Path(order.folder)), order.part
    questions = list(questions_of(folder.questions, part))
    numbered = [
        (part.first + place, question, trial)
        for place, question in enumerate(questions)
        for trial in question.trials_of(range(1, order.rounds + 1))
    ]
    worker = worker_of(order.command, environment, folder.path)
    with closing(part_journal(folder.journal(part.number))) as journal:
        count = _Count(folder, part.number)
        stop = _stopping(folder)
        worker.ask(iter(numbered), journal, stop, count.add)
        if journal.problem:
            raise InconclusiveError(f"part {part.number} on {worker_name()}: {journal.problem}")
        if count.number < len(numbered):
            return None
        rows = _write(folder, part.number, journal, questions, order.rounds)
    folder.write_num_asked(part.number, rows)
    receipt = Receipt(part=part.number, rows=rows, worker=worker_name(), notes=worker.notes)
    folder.write(folder.receipt_path(part.number), receipt)
    return receipt


def _write(folder: WorkFolder, number: int, journal: Journal, questions: list[Question], rounds: int) -> int:
    """Write the rows of a journal, in the order of the questions, to the file of the part, whole or not at all."""
    path = folder.rows(number)
    new = folder.new_name(path)
    rows = write_lines(new, journal.lines(questions, lambda each: each.trials_of(range(1, rounds + 1))))
    with new.open("rb") as file:
        os.fsync(file.fileno())
    replace_file(new, path)
    return rows


class _Count:
    """Counts rows, and says so in the shared folder now and then."""

    def __init__(self, folder: WorkFolder, part: int) -> None:
        self.number = 0
        self._folder, self._part = folder, part
        self._written_at = time.monotonic()

    def add(self, _row: Row) -> None:
        self.number += 1
        if time.monotonic() - self._written_at > COUNT_SECONDS:
            self._written_at = time.monotonic()
            self._folder.write_num_asked(self._part, self.number)


def _stopping(folder: WorkFolder) -> Callable[[], bool]:
    """Whether to begin no other question; the folder is looked at now and then."""
    looked_at, stopping = -LOOK_SECONDS, False

    def stop() -> bool:
        nonlocal looked_at, stopping
        if not stopping and time.monotonic() - looked_at >= LOOK_SECONDS:
            looked_at, stopping = time.monotonic(), folder.is_to_stop
        return stopping

    return stop
