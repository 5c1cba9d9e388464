"""The work of a worker: one part asked, judged and written to the shared folder."""

from __future__ import annotations

import os
import socket
import sys
import traceback
from collections.abc import Mapping
from contextlib import closing

from evaltrack import __version__
from evaltrack.errors import EvaltrackError, InconclusiveError, UsageError
from evaltrack.evaluation.engine.beat import Beat
from evaltrack.evaluation.engine.folder import WorkFolder, rows_name
from evaltrack.evaluation.engine.orders import Fault, Order, PartEnd, Receipt
from evaltrack.evaluation.engine.part_file import write_lines
from evaltrack.evaluation.engine.part_journal import part_journal
from evaltrack.evaluation.engine.plan import questions_of
from evaltrack.evaluation.engine.worker import worker_of
from evaltrack.evaluation.journal import Journal
from evaltrack.records import Question

TRACEBACK_LINES = 3


def run_part(order: str, environment: Mapping[str, str]) -> str:
    """Ask the questions of one part and write its rows and its receipt; what was done of it before is not done again.

    `order` is an `Order` as JSON, `environment` holds variables that the driver has and the worker may lack. Gives a
    `PartEnd` as JSON: a fault is data, so that it reaches the driver whole.
    """
    own = Order.model_validate_json(order)
    number = own.part.number
    folder = WorkFolder(own.folder)
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
    folder, part = WorkFolder(order.folder), order.part
    questions = list(questions_of(folder, part))
    numbered = [
        (part.first + place, question, trial)
        for place, question in enumerate(questions)
        for trial in range(1, order.rounds + 1)
    ]
    worker = worker_of(order.command, environment, folder)
    with closing(part_journal(folder, part.number)) as journal:
        with Beat(folder, part.number, journal) as beat:
            worker.ask(iter(numbered), journal, beat.is_to_stop, beat.add)
        if journal.fault:
            raise InconclusiveError(f"part {part.number} on {worker_name()}: {journal.fault}")
        if beat.num_rows < len(numbered):
            journal.share_rest()
            return None
        rows = _write(folder, part.number, journal, questions, order.rounds)
    folder.write_num_asked(part.number, rows)
    receipt = Receipt(part=part.number, rows=rows, worker=worker_name(), notes=worker.notes)
    folder.write_receipt(receipt)
    return receipt


def _write(folder: WorkFolder, number: int, journal: Journal, questions: list[Question], rounds: int) -> int:
    """Write the rows of a journal, in the order of the questions, to the file of the part, whole or not at all."""
    with folder.files.draft(rows_name(number)) as draft:
        rows = write_lines(draft, journal.lines(questions, lambda _: range(1, rounds + 1)))
        folder.files.put(draft, rows_name(number))
    return rows
