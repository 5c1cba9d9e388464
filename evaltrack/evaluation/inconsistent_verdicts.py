"""Verdicts whose grades their own counts do not allow: they count, and a note says so."""

from __future__ import annotations

from evaltrack.metrics.anchors import misfits
from evaltrack.records import Row
from evaltrack.records.amount import count, first_of, verb

SHOWN = 3
"""Verdicts that are named."""


class Misfits:
    """Looks at the verdicts as they come; an LLM's are never among them, as it is asked again."""

    def __init__(self) -> None:
        self._count = 0
        self._named: list[str] = []

    def add(self, row: Row, _times: int = 1) -> None:
        """Take one finished question; those that stand for more of their kind have no verdicts."""
        for verdict in row.verdicts:
            words = "; ".join(misfits(verdict.observed)) if verdict.observed is not None else ""
            if words:
                self._count += 1
                self._named.append(f"{row.question.id[:80]} ({words})")
                del self._named[SHOWN:]

    @property
    def note(self) -> str | None:
        """How many verdicts, which are the first, and what is wrong with them."""
        if not self._count:
            return None
        verdicts = f"{count(self._count, 'verdict')} {verb(self._count, 'gives', 'give')} a grade"
        named = first_of(self._named, SHOWN, self._count)
        return f"{verdicts} that its own count does not allow, and counts as it is: {named}"
