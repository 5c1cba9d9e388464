"""The documents behind what got worse, with their texts on both sides as far as the rows hold them. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from evaltrack.compare.change import Change
from evaltrack.compare.comparison import Comparison
from evaltrack.compare.culprits import Culprit
from evaltrack.rows.stored_row import StoredRow


@dataclass(frozen=True)
class DocumentPart:
    """One chunk of a document; a text is None where no row of that side holds it."""

    name: str
    before: str | None
    after: str | None

    @property
    def differs(self) -> bool:
        """Whether the text of one side is not that of the other."""
        return self.before != self.after


@dataclass(frozen=True)
class ChangedDocument:
    """A document, what happened to it, and the questions that it made worse."""

    culprit: Culprit
    parts: tuple[DocumentPart, ...]
    questions: tuple[Change, ...]


def changed_documents(comparison: Comparison, most: int) -> list[ChangedDocument]:
    """At most so many, those with the most questions first; what is no document is left out."""
    worse = {change.id: change for change in comparison.worse}
    documents = [culprit for culprit in comparison.culprits if culprit.page is not None][:most]
    names = {part for culprit in documents for part in culprit.parts}
    every = [change for changes in comparison.by_fate.values() for change in changes]
    before, after = (_texts([getattr(change, side) for change in every], names) for side in ("before", "after"))
    return [
        ChangedDocument(
            culprit,
            tuple(DocumentPart(part, before.get(part), after.get(part)) for part in culprit.parts),
            tuple(worse[key] for key in culprit.ids),
        )
        for culprit in documents
    ]


def _texts(rows: list[StoredRow | None], names: set[str]) -> dict[str, str]:
    """The first text of each of these sources that a row holds."""
    texts: dict[str, str] = {}
    for row in rows:
        for source in (row.sources or ()) if row is not None else ():
            if source.text is not None and row is not None and (name := row.name_of(source)) in names:
                texts.setdefault(name, source.text)
    return texts
