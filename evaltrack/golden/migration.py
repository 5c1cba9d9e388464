"""Where the text of a chunk is in a corpus that was cut anew. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from evaltrack.golden.corpus import Chunk
from evaltrack.golden.lint.library import Library
from evaltrack.golden.quotes import QuoteChooser
from evaltrack.records import Passage, Question
from evaltrack.records.passage import words_of

SHOWN_CANDIDATES = 5
"""Chunks among which a person chooses where the new place is in doubt."""


@dataclass(frozen=True)
class Move:
    """Where an expected chunk is now: any one of `places`; with none of them it is in `doubt`, among `candidates`."""

    question: str
    chunk: str
    places: tuple[str, ...] = ()
    doubt: str = ""
    quote: str = ""
    candidates: tuple[str, ...] = ()


class Mover:
    """Finds the chunks of one library in another one."""

    def __init__(self, old: Library, new: Library) -> None:
        self._old, self._new = old, new
        self._chooser = QuoteChooser(old)

    def move(self, question: Question, key: str) -> Move:
        """The new place of a chunk: that with the same words, else those that hold the passage which answers."""
        chunk = self._old.by_id.get(key)
        if chunk is None:
            return Move(question.id, key, doubt=f"it is not in {self._old.name}")
        if same := self._same_words.get(tuple(words_of(chunk.headed_text))):
            return Move(question.id, key, same)
        choice = self._chooser.choose(chunk, question)
        if choice is None:
            return Move(question.id, key, doubt="it holds no words")
        places = self._holders(choice.quote)
        if places and choice.unique:
            return Move(question.id, key, places)
        doubt = "its words stand in several chunks" if places else f"no chunk of {self._new.name} holds its words"
        return Move(question.id, key, (), doubt, choice.quote, places or self._likely(chunk))

    @cached_property
    def _same_words(self) -> dict[tuple[str, ...], tuple[str, ...]]:
        """The new chunks by all of their words."""
        same: dict[tuple[str, ...], tuple[str, ...]] = {}
        for chunk in self._new.chunks:
            words = tuple(words_of(chunk.headed_text))
            same[words] = (*same.get(words, ()), chunk.id)
        return same

    def _holders(self, quote: str) -> tuple[str, ...]:
        """The chunks that hold the quotation whole; if none does, those that a border leaves at least half of it."""
        for passage in (Passage(quote=quote, share=1.0), Passage(quote=quote)):
            if places := tuple(key for key, text in self._new.texts.items() if text.holds(passage)):
                return places
        return ()

    def _likely(self, chunk: Chunk) -> tuple[str, ...]:
        """The chunks with most of its words."""
        own = self._old.words[chunk.id]
        shares = {key: len(own & words) / (1 + len(own | words)) for key, words in self._new.words.items()}
        return tuple(sorted(shares, key=shares.__getitem__, reverse=True)[:SHOWN_CANDIDATES])


def moved_fields(question: Question, moves: Sequence[Move]) -> dict[str, object]:
    """The fields of a question whose chunks are at other places now.

    `expected_chunks` names one place of each. Where several hold one, and the question has no passages yet, they are a
    choice.
    """
    fields: dict[str, object] = {"expected_chunks": list(dict.fromkeys(move.places[0] for move in moves))}
    if question.expected_passages is None and any(len(move.places) > 1 for move in moves):
        choices = dict.fromkeys(move.places for move in moves)
        fields["expected_passages"] = [{"any_of": list(places)} for places in choices]
    return fields
