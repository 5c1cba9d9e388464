"""Negatives that pass as the target returned no sources, and that were answered nevertheless, as their judges say."""

from __future__ import annotations

from evaltrack.privacy.addresses import shown_text
from evaltrack.records import Row
from evaltrack.records.amount import count, first_of, verb

SHOWN = 3
"""Questions that are named."""


class AnsweredNegatives:
    """Counts them as they come."""

    def __init__(self) -> None:
        self._number = 0
        self._ids: list[str] = []

    def add(self, row: Row, _times: int = 1) -> None:
        """Take one finished question; those that stand for more of their kind have no verdicts."""
        opinions = {verdict.declined for verdict in row.verdicts}
        if row.passed and row.question.negative and opinions == {False} and row.response and not row.response.abstained:
            self._number += 1
            self._ids += [row.question.id] * (len(self._ids) < SHOWN)

    @property
    def note(self) -> str | None:
        """How many, the first of them, and what to return instead."""
        if not self._number:
            return None
        ids = first_of([*map(shown_text, self._ids)], SHOWN, self._number)
        those = f"{count(self._number, 'negative')} ({ids}) {verb(self._number, 'passes', 'pass')}"
        why = "as the target returned no sources, though the judge says that the answer does not decline"
        return f"{those} {why}; leave `sources` out where the target does not retrieve"
