"""On the driver, before workers begin: the shared folder with the parts that are to be asked, and what is done of them.

A run that is gone on with takes the parts and receipts as they lie there where its questions are the same. Where they
are not, or failed ones are to be asked again, all rows go to the journal of the run, and what that recalls is laid
into the journals of the new parts.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import closing
from itertools import islice

from evaltrack.errors import InconclusiveError, UsageError
from evaltrack.evaluation.engine.finalise import lines_of
from evaltrack.evaluation.engine.folder import QUESTIONS, WorkFolder, words_of
from evaltrack.evaluation.engine.orders import Manifest
from evaltrack.evaluation.engine.part_journal import part_journal
from evaltrack.evaluation.engine.plan import cut, questions_of
from evaltrack.evaluation.engine.store_address import SETTING
from evaltrack.evaluation.journal import Journal
from evaltrack.evaluation.journal_lines import Line
from evaltrack.records import Question, Row

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
    try:
        with folder.files.draft(QUESTIONS) as draft:
            manifest = cut(questions, draft, size)
            before = journal.parts_folder
            earlier = folder.manifest() if before and before.place == folder.place else None
            if earlier and earlier.digest == manifest.digest and not journal.retries_errors:
                folder.go_on()
                journal.count_reused(_num_done(folder, earlier))
                return earlier
            gather(journal, keep=draft.name)
            folder.make()
            folder.files.put(draft, QUESTIONS)
        _lay_in(folder, manifest, journal, rounds)
        folder.write_manifest(manifest)
        journal.lies_also_in(folder)
    except OSError as error:
        raise UsageError(f"{SETTING}: {folder} cannot be written: {words_of(error)}; name another folder") from None
    return manifest


def gather(journal: Journal, keep: str = "") -> None:
    """Take all rows that workers have in a shared folder into the journal of the run, and remove them there.

    Raises:
        InconclusiveError: they cannot be read, or not be kept.
    """
    folder = journal.parts_folder
    manifest = folder.manifest() if folder else None
    if folder is None or manifest is None:
        return
    numbers = [part.number for part in manifest.parts]
    done, begun = {receipt.part for receipt in folder.receipts(numbers)}, folder.begun()
    for number in numbers:
        if number in done:
            _adopt(journal, lines_of(folder, number))
        elif number in begun:
            with closing(part_journal(folder, number)) as own:
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
        for place, question in enumerate(questions_of(folder, part), start=part.first):
            for trial in range(1, rounds + 1):
                if (row := journal.recall(question, trial)) is not None:
                    rows.append(row.model_copy(update={"position": place, "question": question}))
        if rows:
            with closing(part_journal(folder, part.number)) as own:
                own.keep(rows)
                own.share_rest()


def _num_done(folder: WorkFolder, manifest: Manifest) -> int:
    """How many rows of all parts are there."""
    numbers = [part.number for part in manifest.parts]
    done = {receipt.part: receipt.rows for receipt in folder.receipts(numbers)}
    rows = sum(done.values())
    for number in folder.begun() - done.keys():
        with closing(part_journal(folder, number)) as own:
            rows += own.reuse.num_rows
    return rows
