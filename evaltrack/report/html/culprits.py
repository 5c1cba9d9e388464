"""Which sources are behind what got worse, as a report shows them."""

from __future__ import annotations

from dataclasses import dataclass

from evaltrack.compare.comparison import Comparison
from evaltrack.compare.culprits import Culprit, culprits
from evaltrack.report.comparison.words import CAUSES
from evaltrack.report.html.text import safe_link, shown

SHOWN, QUESTIONS, PARTS = 8, 8, 6

HAPPENED = {
    "displaced": "took the place of expected sources",
    "ids_changed": "has another id now",
    "source_text_changed": "has another text now",
    "source_lost": "is no longer returned",
    "source_demoted": "is returned lower",
}


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
    def first_parts(self) -> list[str]:
        """As many chunks as are named; none where the page is named alike."""
        return [part for part in self.parts if part != self.name][:PARTS]


def culprit_lines(comparison: Comparison) -> list[CulpritLine]:
    """At most `SHOWN`, those with the most questions first."""
    return [_line(culprit) for culprit in culprits(comparison)[:SHOWN]]


def _line(culprit: Culprit) -> CulpritLine:
    return CulpritLine(
        shown(culprit.page, 120),
        culprit_words(culprit),
        safe_link(culprit.link),
        tuple(shown(part, 120) for part in culprit.parts),
        tuple(shown(key, 200) for key in culprit.ids),
    )


def culprit_words(culprit: Culprit) -> str:
    """What happened to the page, or to the questions where no page is concerned."""
    if culprit.message:
        return f"error: {shown(culprit.message, 200)}"
    if culprit.page is not None:
        return HAPPENED[culprit.kind]
    return CAUSES[culprit.kind] if culprit.kind != "displaced" else HAPPENED["displaced"]
