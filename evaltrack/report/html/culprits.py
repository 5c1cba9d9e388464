"""Which sources are behind what got worse, as a report shows them."""

from __future__ import annotations

from dataclasses import dataclass

from evaltrack.compare.comparison import Comparison
from evaltrack.compare.culprits import Culprit
from evaltrack.records.amount import count
from evaltrack.report.comparison.culprit_words import culprit_words
from evaltrack.report.html.text import safe_link, shown

SHOWN, QUESTIONS, PARTS = 8, 8, 6


@dataclass(frozen=True)
class CulpritLine:
    """A culprit in words: the page, empty where no source is concerned, and what happened to it."""

    name: str
    what: str
    link: str | None
    parts: tuple[str, ...]
    ids: tuple[str, ...]

    @property
    def first_ids(self) -> tuple[str, ...]:
        """As many as are linked to."""
        return self.ids[:QUESTIONS]

    @property
    def more_ids(self) -> int:
        """Questions that are not linked to."""
        return len(self.ids) - len(self.first_ids)

    @property
    def first_parts(self) -> list[str]:
        """As many chunks as are named; none where the page is named alike."""
        return self._named_parts[:PARTS]

    @property
    def more_parts(self) -> int:
        """Chunks that are not named."""
        return len(self._named_parts[PARTS:])

    @property
    def _named_parts(self) -> list[str]:
        return [part for part in self.parts if part != self.name]


def culprit_lines(comparison: Comparison) -> list[CulpritLine]:
    """At most `SHOWN`, those with the most questions first."""
    return [_line(culprit, comparison.candidate.signature.k) for culprit in comparison.culprits[:SHOWN]]


def more_culprits(comparison: Comparison) -> str:
    """``and 2 more, with 1 question each``: how many are not shown, with how many questions; empty where all are."""
    sizes = [len(culprit.ids) for culprit in comparison.culprits[SHOWN:]]
    if not sizes:
        return ""
    most = f"{'' if sizes[0] == sizes[-1] else 'at most '}{count(sizes[0], 'question')}"
    return f"and {len(sizes):,} more, with {most}{' each' if len(sizes) > 1 else ''}"


def _line(culprit: Culprit, k: int) -> CulpritLine:
    return CulpritLine(
        shown(culprit.page, 120),
        culprit_words(culprit, k),
        safe_link(culprit.link),
        tuple(shown(part, 120) for part in culprit.parts),
        tuple(shown(key, 200) for key in culprit.ids),
    )
