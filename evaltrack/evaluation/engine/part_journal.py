"""The journal of a part, which one worker after the other may have open."""

from __future__ import annotations

import time
from pathlib import Path

from evaltrack.errors import InconclusiveError
from evaltrack.evaluation.journal import Journal
from evaltrack.evaluation.journal_errors import JournalBusyError

LOCKED_SECONDS = 30.0
"""How long it may be held by a worker that was given up and has not ended yet."""
LOOK_SECONDS = 0.25
"""Between two looks."""


def part_journal(path: Path) -> Journal:
    """The journal of a part, once a worker that was given up has let go of it.

    Raises:
        InconclusiveError: it has not, or it cannot be written.
    """
    give_up = time.monotonic() + LOCKED_SECONDS
    while True:
        try:
            journal = Journal(path, {})
        except JournalBusyError:
            if time.monotonic() > give_up:
                cure = "wait until it has ended, and go on with `evaltrack resume`"
                raise InconclusiveError(f"{path}: is held by another worker; {cure}") from None
            time.sleep(LOOK_SECONDS)
            continue
        if journal.problem:
            journal.close()
            raise InconclusiveError(journal.problem)
        return journal
