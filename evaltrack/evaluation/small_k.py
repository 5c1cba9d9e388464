"""Whether k is smaller than what questions expect: their recall cannot reach 1, whatever the target returns."""

from __future__ import annotations

from evaltrack.errors import Guide
from evaltrack.metrics.relevance import expected_of
from evaltrack.records import Row
from evaltrack.records.amount import count, verb


class SmallK:
    """Counts the questions that expect more than the first k can hold."""

    def __init__(self, k: int) -> None:
        self._k = k
        self._count = self._most = 0

    def add(self, row: Row, times: int = 1) -> None:
        """Take one finished question, or more of its kind. Passages do not count: a chunk may bring several."""
        expected = () if row.question.expected_passages is not None else expected_of(row) or ()
        self._count += times * (len(expected) > self._k)
        self._most = max(self._most, len(expected))

    @property
    def note(self) -> str | None:
        """How many questions, and the k that would do."""
        if not self._count:
            return None
        questions = f"{count(self._count, 'question')} {verb(self._count, 'expects', 'expect')}"
        what = f"{questions} more than k = {self._k} sources, so that recall cannot reach 1; `k={self._most}` would do"
        return f"{what}. {Guide.RECALL.reference}"
