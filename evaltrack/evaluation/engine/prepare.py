"""On the driver, before workers begin: the shared folder with the parts that are to be asked, and what is done of them.

A run that is gone on with takes the parts and receipts as they lie there where its questions are the same. Where they
are not, or failed ones are to be asked again, all rows go to the journal of the run, and what that recalls is laid
into the journals of the new parts.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from itertools import islice
from pathlib import Path

from evaltrack.errors import InconclusiveError, UsageError
from evaltrack.evaluation.engine.finalise import lines_of
from evaltrack.evaluation.engine.folder import SETTING, WorkFolder
from evaltrack.evaluation.engine.orders import Manifest, Part
from evaltrack.evaluation.engine.part_journal import part_journal
from evaltrack.evaluation.engine.plan import cut, questions_of
from evaltrack.evaluation.journal import Journal
from evaltrack.evaluation.journal_lines import Line
from evaltrack.records import Question, Row
from evaltrack.system.files import replace_file

BATCH = 500
"""Rows taken over in one transaction."""


def prepare(folder: WorkFolder, questions: Iterable[Question], journal: Journal, *, size: int, rounds: int) -> Manifest:
    """The parts of a run, in its shared folder.

    Raises:
        UsageError: the folder cannot be made or written.
        InconclusiveError: what was done before cannot be taken over.
        GoldenError: the golden set is no longer what was checked.
    """
    folder.make()
    new = folder.new_name(folder.questions)
    try:
        manifest = cut(questions, new, size)
        before = journal.parts_folder
        earlier = folder.manifest() if before and before.path == folder.path else None
        if earlier and earlier.digest == manifest.digest and not journal.retries_errors:
            new.unlink()
            folder.go_on()
            journal.count_reused(sum(_num_done(folder, part) for part in earlier.parts))
            return earlier
        gather(journal, keep=new)
        folder.make()
        replace_file(new, folder.questions)
        _lay_in(folder, manifest, journal, rounds)
        folder.write_manifest(manifest)
        journal.lies_also_in(folder)
    except OSError as error:
        raise UsageError(f"{SETTING}: {folder.path} cannot be written: {error.strerror}; name another folder") from None
    return manifest


def gather(journal: Journal, keep: Path | None = None) -> None:
    """Take all rows that workers have in a shared folder into the journal of the run, and remove them there.

    Raises:
        InconclusiveError: they cannot be read, or not be kept.
    """
    folder = journal.parts_folder
    manifest = folder.manifest() if folder else None
    if folder is None or manifest is None:
        return
    for part in manifest.parts:
        if folder.receipt(part.number):
            _adopt(journal, lines_of(folder, part.number))
        elif folder.journal(part.number).is_file():
            with closing(part_journal(folder.journal(part.number))) as own:
                _adopt(journal, own.all_lines())
    if journal.problem:
        raise InconclusiveError(f"what workers did cannot be taken over: {journal.problem}")
    folder.remove(keep)
    journal.lies_also_in(None)


def _adopt(journal: Journal, lines: Iterable[Line]) -> None:
    remaining = iter(lines)
    while batch := list(islice(remaining, BATCH)):
        journal.adopt(batch)


def _lay_in(folder: WorkFolder, manifest: Manifest, journal: Journal, rounds: int) -> None:
    """Give each part the rows of its questions that the journal of the run recalls, under the places they have now."""
    if not journal.reuse.num_rows:
        return
    for part in manifest.parts:
        rows = list[Row]()
        for place, question in enumerate(questions_of(folder.questions, part), start=part.first):
            for trial in question.trials_of(range(1, rounds + 1)):
                if (row := journal.recall(question, trial)) is not None:
                    rows.append(row.model_copy(update={"position": place, "question": question}))
        if rows:
            with closing(part_journal(folder.journal(part.number))) as own:
                own.keep(rows)


def _num_done(folder: WorkFolder, part: Part) -> int:
    """How many rows of a part are there."""
    if receipt := folder.receipt(part.number):
        return receipt.rows
    if not folder.journal(part.number).is_file():
        return 0
    with closing(part_journal(folder.journal(part.number))) as own:
        return own.reuse.num_rows
