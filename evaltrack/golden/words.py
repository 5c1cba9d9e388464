"""The content words of a text: stemmed English words without stop words; and the form in which questions compare."""

from __future__ import annotations

import re
import unicodedata

APOSTROPHE = "\N{RIGHT SINGLE QUOTATION MARK}"


def text_key(text: str) -> str:
    """The form in which the texts of questions are compared: case-folded, one space where there were several."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def plain_form(key: str) -> str:
    """The common form of ids that differ in their form alone.

    They are equal but for case, the suffix `.md`, zeros before a number, `_`, `-` and blanks, and punctuation in the
    heading (after `#`). Zeros after a point stay: 1.01 and 1.1 are two versions.
    """
    shown = "".join(each for each in unicodedata.normalize("NFKC", key) if each.isprintable() or each.isspace())
    page, sign, heading = shown.casefold().strip().partition("#")
    heading = re.sub(r"[^\w\s-]", "", heading).strip()
    text = re.sub(r"[\s_-]+", "-", page.strip().removesuffix(".md") + sign + heading)
    return re.sub(r"(?<![\d.,])0+(?=\d)", "", text)


def told_apart(one: str, other: str) -> tuple[str, str]:
    """Two names as they are, or with escapes where they look the same on a screen."""
    return (ascii(one), ascii(other)) if one != other and _looks(one) == _looks(other) else (one, other)


def _looks(name: str) -> str:
    return "".join(each for each in unicodedata.normalize("NFKC", name) if each.isprintable() and each != " ")


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
        plain = unicodedata.normalize("NFC", text).lower().replace(APOSTROPHE, "'")
        words = re.findall(r"\w+(?:'\w+)?", plain)
        return [word for word in words if word not in self._stop]
