"""Questions of which some trials failed: they are measured by the others."""

from __future__ import annotations

from evaltrack.privacy.addresses import shown_text
from evaltrack.records import Row
from evaltrack.records.amount import count, first_of, verb

SHOWN_IDS = 3

SHOWN = 200
"""Characters shown of an error."""


class FailedTrials:
    """Looks at the trials as they come, and at each question when the last of its trials is in."""

    def __init__(self) -> None:
        self._number = self._in_part = 0
        self._waiting: dict[int, str] = {}
        self._ids: list[str] = []
        self._first = ""

    def add_trial(self, row: Row) -> None:
        """Take one trial."""
        if row.failure is not None:
            self._number += 1
            self._waiting.setdefault(row.position, str(row.failure))

    def add_question(self, row: Row) -> None:
        """Take one finished question, whose trials were taken."""
        error = self._waiting.pop(row.position, "")
        if error and row.passed is not None:
            self._in_part += 1
            self._first = self._first or error
            self._ids += [row.question.id] * (len(self._ids) < SHOWN_IDS)

    @property
    def note(self) -> str | None:
        """How many trials failed, which questions are measured by a part of theirs, and the first error of these."""
        if not self._in_part:
            return None
        ids = first_of([*map(shown_text, self._ids)], SHOWN_IDS, self._in_part)
        those = f"{count(self._in_part, 'question')} ({ids}) {verb(self._in_part, 'is', 'are')} measured by the others"
        return f"{count(self._number, 'trial')} failed ({shown_text(self._first)[:SHOWN]}); {those}"
