"""Scores of one's own that were not measured for some questions, and the most frequent reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from evaltrack.privacy.addresses import shown_text
from evaltrack.records import Row
from evaltrack.records.amount import count, verb

REASONS = 100
"""Different reasons of one score that are counted; of further ones only that there are some."""

SHOWN = 200
"""Characters shown of a reason."""


class ScoreGaps:
    """Looks at the rows as they come, for scores with these names."""

    def __init__(self, names: Sequence[str]) -> None:
        self._reasons: dict[str, Counter[str]] = {name: Counter() for name in names}
        self._answered = 0

    def add(self, row: Row, times: int = 1) -> None:
        """Take one finished question, or more of its kind."""
        self._answered += times * (row.response is not None)
        for name, reasons in self._reasons.items():
            why = row.unmeasured.get(name)
            if why is not None:
                reasons[why if why in reasons or len(reasons) < REASONS else ""] += times

    @property
    def notes(self) -> Iterator[str]:
        """For each score with a gap: of how many questions it has no value, and the most frequent reason."""
        answered = f"{count(self._answered, 'question')} that {verb(self._answered, 'was', 'were')} answered"
        for name, reasons in self._reasons.items():
            if reasons:
                why, times = next((each for each in reasons.most_common(2) if each[0]), ("", 0))
                much = f"{reasons.total():,} of {answered}"
                yield f"{name} was not measured on {much}: {shown_text(why)[:SHOWN]} ({times:,}x)"
