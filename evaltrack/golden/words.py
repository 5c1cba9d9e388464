"""The content words of a text: stemmed English words without stop words; and the form in which questions compare."""

from __future__ import annotations

import re

APOSTROPHE = "\N{RIGHT SINGLE QUOTATION MARK}"


def text_key(text: str) -> str:
    """The form in which the texts of questions are compared: case-folded, one space where there were several."""
    return " ".join(text.casefold().split())


class ContentWords:
    """Splits texts into stemmed English words, without stop words, in their order."""

    def __init__(self) -> None:
        from bm25s.stopwords import STOPWORDS_EN_PLUS
        from Stemmer import Stemmer

        self._stop = frozenset(STOPWORDS_EN_PLUS)
        self._stem = Stemmer("english").stemWords

    def __call__(self, text: str) -> list[str]:
        """The stems of the words of a text; a word that occurs twice is there twice."""
        stems: list[str] = self._stem(self._words(text))
        return stems

    def by_stem(self, text: str) -> dict[str, str]:
        """The first word of each stem, in the order of the text."""
        first: dict[str, str] = {}
        words = self._words(text)
        for stem, word in zip(self._stem(words), words, strict=True):
            first.setdefault(stem, word)
        return first

    def _words(self, text: str) -> list[str]:
        words = re.findall(r"\w+(?:'\w+)?", text.lower().replace(APOSTROPHE, "'"))
        return [word for word in words if word not in self._stop]
