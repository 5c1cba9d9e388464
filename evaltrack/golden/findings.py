"""Defines the rules and findings of `golden lint`, and the index of chunks in which expected sources are looked up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

from pydantic import computed_field

from evaltrack.golden.corpus import Chunk
from evaltrack.golden.reader import NumberedQuestion
from evaltrack.golden.words import ContentWords
from evaltrack.records import Passage, Question, Record
from evaltrack.records.question import SourceText, title_key

Severity = Literal["error", "warning", "note"]


class Rule(NamedTuple):
    """The severity of a finding and its meaning in a few words."""

    severity: Severity
    meaning: str


RULES = {
    "bad-line": Rule("error", "a line is not a valid question"),
    "bad-file": Rule("error", "the file does not exist, cannot be read, or holds no questions"),
    "missing-id": Rule("error", "an expected id is not in the corpus"),
    "other-form-id": Rule(
        "error", "an expected id is in the corpus with another spelling: case, leading zeros, `.md`, `_`, `-`"
    ),
    "missing-quote": Rule("error", "no chunk contains an expected quotation"),
    "contradiction": Rule("warning", "two questions ask the same and expect different things"),
    "near-duplicate": Rule("warning", "two questions ask the same"),
    "answer-not-in-chunks": Rule("warning", "most words of the expected answer are not in the expected chunks"),
    "empty-answer": Rule("warning", "the expected answer is a placeholder: `TODO`, `n/a`, `?`"),
    "unused-answer": Rule("warning", "a negative has an expected answer, which is not used"),
    "answered-negative": Rule("warning", "a chunk may answer a negative"),
    "unmarked-duplicate": Rule("warning", "a chunk with the same text as an expected one is not expected"),
    "common-quote": Rule("warning", "more than three chunks contain an expected quotation"),
    "repeated-id": Rule("warning", "a question expects something twice"),
    "surrounding-blanks": Rule("warning", "a text begins or ends with blanks"),
    "thin-domain": Rule("warning", "a domain has fewer than 10 questions or 2 negatives"),
    "too-small": Rule("warning", "fewer than 6 answerable questions: no exact test can show a loss"),
    "no-corpus": Rule("note", "there is no corpus to look up expected sources in"),
    "ambiguous-source": Rule("note", "several pages have an expected title"),
}
"""Each code with its rule. Errors exit with code 2, warnings with 1 if warnings are to count; notes only inform."""


class Finding(Record):
    """One problem in a golden set.

    `line` and `id` are None if it concerns the whole set; `id` is the question's.
    """

    file: str
    line: int | None = None
    id: str | None = None
    code: str
    message: str
    cure: str

    @computed_field
    @property
    def severity(self) -> Severity:
        """The severity of the finding's rule."""
        return RULES[self.code].severity

    def __str__(self) -> str:
        """Return ``FILE:LINE: question ID: what is wrong; cure [code]``."""
        severity = "" if self.severity == "error" else f"{self.severity}: "
        question = "" if self.id is None else f"question {self.id}: "
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        return f"{place}: {severity}{question}{self.message}; {self.cure} [{self.code}]"


def finding(asked: NumberedQuestion, code: str, message: str, cure: str) -> Finding:
    """Return a finding about one question."""
    return Finding(file=asked.file, line=asked.line, id=asked.question.id, code=code, message=message, cure=cure)


@dataclass(frozen=True)
class Library:
    """The chunks of a corpus for the questions of some domains; messages call it `name`."""

    name: str
    chunks: tuple[Chunk, ...]
    domains: frozenset[str]

    def entries(self, entries: Iterable[NumberedQuestion]) -> list[NumberedQuestion]:
        """Return the questions of this library's domains."""
        return [entry for entry in entries if entry.question.domain in self.domains]

    @cached_property
    def by_id(self) -> dict[str, Chunk]:
        """The chunks by their ids."""
        return {chunk.id: chunk for chunk in self.chunks}

    @cached_property
    def by_title(self) -> dict[str, list[Chunk]]:
        """The chunks of each title, by the normalized title (`title_key`)."""
        titles: dict[str, list[Chunk]] = {}
        for chunk in self.chunks:
            titles.setdefault(title_key(chunk.title), []).append(chunk)
        return titles

    @cached_property
    def words(self) -> dict[str, frozenset[str]]:
        """The content words of each chunk, with its title and heading, by its id."""
        split = ContentWords()
        return {chunk.id: frozenset(split(f"{chunk.title} {chunk.heading} {chunk.text}")) for chunk in self.chunks}

    @cached_property
    def texts(self) -> dict[str, SourceText]:
        """The text of each chunk with its heading, as a target returns it, by id."""
        return {chunk.id: SourceText(chunk.headed_text) for chunk in self.chunks}

    def expected_chunks(self, question: Question) -> list[Chunk]:
        """Return the chunks that a question expects, by passage, id or title; empty if any of them is missing."""
        parts = [self._holders(passage) for passage in question.expected_passages or ()]
        if question.expected_passages is None:
            expected = question.expected_names or ()
            if question.by_title:
                parts = [self.by_title.get(title, []) for title in dict.fromkeys(map(title_key, expected))]
            else:
                parts = [[self.by_id[key]] if key in self.by_id else [] for key in dict.fromkeys(expected)]
        return [chunk for part in parts for chunk in part] if all(parts) else []

    def _holders(self, passage: Passage) -> list[Chunk]:
        return [each for each in self.chunks if each.id in passage.any_of or self.texts[each.id].holds(passage)]
