"""The documents behind what got worse, as the page of a comparison shows them: text before and after, and questions."""

from __future__ import annotations

from dataclasses import dataclass

from evaltrack.compare.changed_documents import ChangedDocument, DocumentPart, changed_documents
from evaltrack.compare.comparison import Comparison
from evaltrack.records.amount import count
from evaltrack.report.comparison.culprit_words import culprit_words
from evaltrack.report.comparison.words import cause_words
from evaltrack.report.html.document_diff import DiffLine, document_diff
from evaltrack.report.html.text import safe_link, shown

DOCUMENTS, PARTS, QUESTIONS = 6, 6, 12


@dataclass(frozen=True)
class PartView:
    """One chunk: its name, what can be said of its text, and the text as lines of a review."""

    name: str
    state: str
    lines: tuple[DiffLine, ...]
    added: int
    removed: int


@dataclass(frozen=True)
class QuestionView:
    """A question under its document: id, text, and what became of it."""

    id: str
    question: str
    way: str
    detail: str


@dataclass(frozen=True)
class DocumentView:
    """A document and what happened to it in words, with its chunks and its questions."""

    name: str
    what: str
    counted: str
    link: str | None
    parts: tuple[PartView, ...]
    questions: tuple[QuestionView, ...]
    more: int
    more_parts: int


def document_views(comparison: Comparison) -> list[DocumentView]:
    """At most `DOCUMENTS`, those with the most questions first."""
    return [_view(document, comparison.candidate.signature.k) for document in changed_documents(comparison, DOCUMENTS)]


def _view(document: ChangedDocument, k: int) -> DocumentView:
    culprit = document.culprit
    differing = [part for part in document.parts if part.differs]  # the same text on both sides explains nothing
    return DocumentView(
        name=shown(culprit.page, 120),
        what=culprit_words(culprit, k),
        counted=f"{count(len(culprit.ids), 'question')} got worse with it",
        link=safe_link(culprit.link),
        parts=tuple(_part(part) for part in differing[:PARTS]),
        questions=tuple(
            QuestionView(
                shown(each.id, 200),
                shown(each.question, 300),
                f"{each.was} → {each.now}" if each.was != each.now else each.fate,
                shown(cause_words(each), 400),
            )
            for each in document.questions[:QUESTIONS]
        ),
        more=max(0, len(document.questions) - QUESTIONS),
        more_parts=len(differing[PARTS:]),
    )


def _part(part: DocumentPart) -> PartView:
    before, after = (None if text is None else shown(text, 20_000) for text in (part.before, part.after))
    lines = tuple(document_diff(before, after))
    counts = [sum(line.kind == kind for line in lines) for kind in ("added", "removed")]
    return PartView(shown(part.name, 160), _state(part), lines, *counts)


def _state(part: DocumentPart) -> str:
    if part.before is None and part.after is None:
        return "Its text is not in the rows."
    if part.after is None:
        return "No longer returned for any question that is listed; whether it still exists is not known here."
    if part.before is None:
        return "Returned now, and before for no question that is listed."
    return ""
