"""The content words of a text: stemmed English words without stop words."""

from __future__ import annotations

import re

APOSTROPHE = "\N{RIGHT SINGLE QUOTATION MARK}"


class ContentWords:
    """Splits texts into stemmed English words, without stop words, in their order."""

    def __init__(self) -> None:
        from bm25s.stopwords import STOPWORDS_EN_PLUS
        from Stemmer import Stemmer

        self._stop = frozenset(STOPWORDS_EN_PLUS)
        self._stem = Stemmer("english").stemWords

    def __call__(self, text: str) -> list[str]:
        """The words of a text; a word that occurs twice is there twice."""
        words = re.findall(r"\w+(?:'\w+)?", text.lower().replace(APOSTROPHE, "'"))
        stems: list[str] = self._stem([word for word in words if word not in self._stop])
        return stems
