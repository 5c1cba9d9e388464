"""Chooses a quotation from an expected chunk, by which the chunk is found again when its id changes."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from math import log

from evaltrack.golden.corpus import Chunk
from evaltrack.golden.lint import Library
from evaltrack.golden.words import content_words
from evaltrack.records import Passage, Question
from evaltrack.records.question import words_of

LEAST_WORDS, MOST_WORDS = 8, 40
"""Words of a quotation: shorter ones occur elsewhere too, longer ones are more often cut by a chunk border."""

ANSWER_WEIGHT = 2.0
"""Weight of a word of the expected answer; a word of the question has the weight 1."""

LEAST_SHARE = 0.2
"""Minimum share of the weight of answer and question that a quotation must hold to be reliable."""

TRIED = 8
"""Quotations of a chunk that are tried to find one that no other chunk holds."""

_BREAK = re.compile(r"(?<=[.!?])\s+|\n\s*\n|\n(?=\s*[-|*#])")


class QuoteChooser:
    """Chooses quotations from the chunks of a library."""

    def __init__(self, library: Library) -> None:
        self._library = library
        self._frequency = Counter(stem for stems in library.words.values() for stem in stems)

    def choose(self, chunk: Chunk, question: Question) -> tuple[str, str] | None:
        """Return the best quotation of a chunk, and the reason to doubt it (empty if there is none).

        The best quotation has the most words of the expected answer and the question. Quotations that occur in
        other chunks are avoided. None if the chunk has no words.
        """
        weights = self._weights(question)
        windows = sorted(_windows(chunk.text), key=lambda window: -self._score(window, weights))[:TRIED]
        if not windows:
            return None
        if (quote := next(filter(self._is_unique, windows), None)) is None:
            return windows[0], "other chunks contain it too"
        held = sum(weights[stem] for stem in set(content_words(quote)) & weights.keys())
        is_likely = weights and held >= LEAST_SHARE * sum(weights.values())
        return quote, "" if is_likely else "it has few words of the answer and the question"

    def _weights(self, question: Question) -> dict[str, float]:
        """Return a weight by stem: rare words weigh more, and the answer's more than the question's."""
        weights: defaultdict[str, float] = defaultdict(float)
        for text, weight in ((question.question, 1.0), (question.expected_answer or "", ANSWER_WEIGHT)):
            for stem in set(content_words(text)):
                weights[stem] = max(weights[stem], weight * self._rarity(stem))
        return {stem: weight for stem, weight in weights.items() if weight > 0}

    def _rarity(self, stem: str) -> float:
        return log((1 + len(self._library.chunks)) / (1 + self._frequency[stem])) if self._frequency[stem] else 0.0

    def _score(self, window: str, weights: dict[str, float]) -> float:
        stems = set(content_words(window))
        return sum(weights.get(stem, 0.0) for stem in stems) / log(8 + len(window.split()))

    def _is_unique(self, quote: str) -> bool:
        passage = Passage(quote=quote, share=1.0)
        return sum(text.holds(passage) for text in self._library.texts.values()) <= 1


def _windows(text: str) -> Iterator[str]:
    """Yield each sentence with the following ones until it has enough words; long ones in overlapping parts."""
    sentences = [" ".join(part.split()) for part in _BREAK.split(text) if words_of(part)]
    for start in range(len(sentences)):
        window = ""
        for sentence in sentences[start:]:
            window = f"{window} {sentence}".strip()
            if len(words_of(window)) >= LEAST_WORDS:
                break
        words = window.split()
        step = MOST_WORDS // 2
        for first in range(0, max(len(words) - step, 1), step):
            yield " ".join(words[first : first + MOST_WORDS])
