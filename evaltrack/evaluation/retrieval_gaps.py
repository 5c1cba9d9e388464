"""Questions that expect sources, and whose retrieval was not measured because of what the target's responses lack."""

from __future__ import annotations

from collections.abc import Iterator

from evaltrack.errors import Guide
from evaltrack.metrics.empty_response import holds_nothing
from evaltrack.metrics.measure import NO_SOURCES
from evaltrack.metrics.relevance import NO_TEXTS
from evaltrack.records import Row
from evaltrack.records.amount import count

CURES = {
    NO_TEXTS: ("quotations are expected, and the sources have no texts; return the `text` of each", Guide.QUOTATIONS),
    NO_SOURCES: ("the target reports no sources; return `sources`, best first", Guide.FUNCTION),
}
"""By the reason in a row what is wrong and how to cure it, where that is the target's form and not the question."""


class RetrievalGaps:
    """Counts them by reason as they come."""

    def __init__(self) -> None:
        self._expecting = 0
        self._reasons = dict.fromkeys(CURES, 0)

    def add(self, row: Row, times: int = 1) -> None:
        """Take one finished question, or more of its kind.

        Who declines needs no sources, and what holds nothing has a note of its own.
        """
        response, why = row.response, row.unmeasured.get("hit", "")
        self._expecting += times * ("hit" in row.scores or why in CURES)
        if response is None or why not in CURES:
            return
        self._reasons[why] += times * (why == NO_TEXTS or not (response.declined or holds_nothing(response)))

    @property
    def notes(self) -> Iterator[str]:
        """For each reason how many questions, of those that expect sources and were answered, and its cure."""
        for why, number in self._reasons.items():
            if number:
                what, guide = CURES[why]
                questions = f"{number:,} of {count(self._expecting, 'question')}"
                yield f"the retrieval of {questions} was not measured: {what}. {guide.reference}"
