"""Splits texts into content words (stemmed English words without stop words), and normalizes questions and ids."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache

APOSTROPHE = "\N{RIGHT SINGLE QUOTATION MARK}"


def text_key(text: str) -> str:
    """Return the form in which questions are compared: case-folded, with single spaces."""
    return " ".join(unicodedata.normalize("NFC", text).casefold().split())


def plain_form(key: str) -> str:
    """Return the common form of ids that differ only in their spelling.

    Case, the suffix `.md`, zeros before a number, `_`, `-`, blanks, and punctuation in the heading (after `#`) are
    ignored. Zeros after a point are kept: 1.01 and 1.1 are two versions.
    """
    shown = "".join(each for each in unicodedata.normalize("NFKC", key) if each.isprintable() or each.isspace())
    page, sign, heading = shown.casefold().strip().partition("#")
    heading = re.sub(r"[^\w\s-]", "", heading).strip()
    text = re.sub(r"[\s_-]+", "-", page.strip().removesuffix(".md") + sign + heading)
    return re.sub(r"(?<![\d.,])0+(?=\d)", "", text)


def told_apart(one: str, other: str) -> tuple[str, str]:
    """Return two names unchanged, or escaped if they look the same on a screen."""
    return (ascii(one), ascii(other)) if one != other and _looks(one) == _looks(other) else (one, other)


def _looks(name: str) -> str:
    return "".join(each for each in unicodedata.normalize("NFKC", name) if each.isprintable() and each != " ")


def content_words(text: str) -> list[str]:
    """Return the stems of the English words of a text without stop words, in their order, including repeats."""
    stems: list[str] = _english()[1](_words(text))
    return stems


def words_by_stem(text: str) -> dict[str, str]:
    """Return the first word of each stem, in the order of the text."""
    first: dict[str, str] = {}
    for stem, word in zip(content_words(text), _words(text), strict=True):
        first.setdefault(stem, word)
    return first


def _words(text: str) -> list[str]:
    plain = unicodedata.normalize("NFC", text).lower().replace(APOSTROPHE, "'")
    words = re.findall(r"\w+(?:'\w+)?", plain)
    return [word for word in words if word not in _english()[0]]


@cache
def _english() -> tuple[frozenset[str], Callable[[list[str]], list[str]]]:
    """Return the stop words and the stemmer, which are imported only if they are used."""
    from bm25s.stopwords import STOPWORDS_EN_PLUS
    from Stemmer import Stemmer

    return frozenset(STOPWORDS_EN_PLUS), Stemmer("english").stemWords
