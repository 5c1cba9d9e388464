"""The chunks in which what some questions expect is looked up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from evaltrack.golden.corpus import Chunk
from evaltrack.golden.lint.finding import Entry
from evaltrack.golden.words import ContentWords
from evaltrack.records import Passage, Question
from evaltrack.records.passage import SourceText, title_key


@dataclass(frozen=True)
class Library:
    """The chunks of a corpus for the questions of some domains; `name` is what messages call it."""

    name: str
    chunks: tuple[Chunk, ...]
    domains: frozenset[str]

    def entries(self, entries: Iterable[Entry]) -> list[Entry]:
        """The questions that are looked up here."""
        return [entry for entry in entries if entry.question.domain in self.domains]

    @cached_property
    def by_id(self) -> dict[str, Chunk]:
        """The chunks by their ids."""
        return {chunk.id: chunk for chunk in self.chunks}

    @cached_property
    def by_title(self) -> dict[str, list[Chunk]]:
        """The chunks of each title, by the form in which titles compare."""
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
        """The text of each chunk as a target returns it, under its heading, by its id."""
        return {chunk.id: SourceText(chunk.headed_text) for chunk in self.chunks}

    def expected_chunks(self, question: Question) -> list[Chunk]:
        """The chunks that a question expects, by passage, by id or by title; none where any of them is missing."""
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
