"""Drafts become checked lines of a golden file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TextIO

from evaltrack.golden.entries import MAX_QUESTION_BYTES
from evaltrack.golden.exchange.fields import FIELDS
from evaltrack.golden.exchange.records import Drafts, ImportSettings, Line, Notes, shown
from evaltrack.golden.lines import checked_question
from evaltrack.records import Question


@dataclass
class LineWriter:
    """Writes golden lines, and collects what is wrong with them at their place in the source.

    Attributes:
        problems: `SOURCE:LINE: what is wrong` for each bad line.
        questions: Lines that were written.
        negatives: Of these, questions that a target should decline.
        judged_only: Of these, questions that expect nothing of retrieval.
    """

    settings: ImportSettings
    notes: Notes
    problems: list[str] = field(default_factory=list)
    questions: int = 0
    negatives: int = 0
    judged_only: int = 0
    _places: dict[str, str] = field(default_factory=dict)

    def write(self, drafts: Drafts, file: TextIO) -> None:
        """Check each draft, and write those that are questions."""
        for position, (place, draft) in enumerate(drafts, start=1):
            problems = [str(draft)] if isinstance(draft, ValueError) else self._written(place, draft, position, file)
            self.problems.extend(f"{place}: {problem}" for problem in problems)

    def _written(self, place: str, draft: Line, position: int, file: TextIO) -> list[str]:
        """Write one line; the problems that hinder it."""
        line = self._completed(draft, position)
        question = checked_question({"domain": "-", **line})
        if isinstance(question, list):
            return question
        first = self._places.setdefault(question.id, place)
        if first != place:
            return [
                f"id `{shown(question.id)}` is already at {first}; ids must be unique (`id_prefix=` tells files apart)"
            ]
        text = json.dumps(line, ensure_ascii=False, allow_nan=False) + "\n"
        if problem := _unwritable(text):
            return [problem]
        file.write(text)
        self._count(place, question)
        return []

    def _completed(self, line: Line, position: int) -> Line:
        """The line with an id (its position where it has none) and its domain, in the order of the fields."""
        key, prefix = line.get("id", position), self.settings.id_prefix
        domain = {"domain": self.settings.domain} if self.settings.domain else {}
        whole = {**domain, **line, "id": f"{prefix}{key}" if prefix else key}
        return {name: whole[name] for name in FIELDS if name in whole}

    def _count(self, place: str, question: Question) -> None:
        self.questions += 1
        self.negatives += question.negative
        self.judged_only += question.expected is None
        for unknown in self._unknown(question):
            self.notes.add("expected chunks that are not in the corpus", f"{place}: {unknown}")

    def _unknown(self, question: Question) -> Iterator[str]:
        """Expected chunks that the corpus lacks, with the id that was probably meant."""
        corpus, passages = self.settings.corpus, question.expected_passages or ()
        names = (*(question.expected_chunks or ()), *(key for each in passages for key in each.any_of))
        for key in names if corpus else ():
            if corpus and key not in corpus.ids:
                near = corpus.nearest(key)
                yield f"`{shown(key)}`" + (f", did you mean `{shown(near)}`?" if near else "")


def _unwritable(text: str) -> str:
    """Why a golden file cannot hold a line; empty where it can."""
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return "holds half of a surrogate pair, which is no text; remove it"
    if size > MAX_QUESTION_BYTES:
        return f"is longer than {MAX_QUESTION_BYTES:,} bytes as a golden line; a question must be shorter"
    return ""
