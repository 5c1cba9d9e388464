"""Defines expected passages: a quotation, or any one of several chunks. Quotations remain valid after rechunking."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from functools import cached_property
from math import ceil
from typing import Annotated

from pydantic import Field, model_validator

from evaltrack.records.base import Key, Record, Text

SHOWN = 80
"""The longest text of a passage that people see."""

_LINK_TARGET = re.compile(r"\]\([^)\s]*\)")
_WORD = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"  # written without spaces
    r"|[^\W\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+"
)


def words_of(text: str) -> list[str]:
    """Return the words by which texts are compared: NFKC, case-folded, without punctuation and link targets.

    In scripts without spaces between words, each letter is a word.
    """
    return _WORD.findall(unicodedata.normalize("NFKC", _LINK_TARGET.sub("]", text)).casefold())


def title_key(title: str) -> str:
    """Return the form in which source titles are compared: Unicode NFC, case-folded, with `_` read as a space."""
    folded = unicodedata.normalize("NFC", title).casefold().replace("_", " ")
    return unicodedata.normalize("NFC", folded).strip()


class Passage(Record):
    """One expected passage: a chunk that holds the `quote`, or one of the chunks `any_of`.

    A chunk whose border cuts the quotation holds it if it has at least the `share` of its words. `source` names the
    quotation's page for people and has no effect.
    """

    quote: Text | None = None
    any_of: tuple[Key, ...] = ()
    source: Text | None = None
    share: Annotated[float, Field(gt=0, le=1)] = 0.5

    @model_validator(mode="after")
    def _one_kind(self) -> Passage:
        if (self.quote is None) == (not self.any_of):
            raise ValueError("a passage has a `quote`, or chunk ids in `any_of`, and not both")
        if self.quote is not None and not words_of(self.quote):
            raise ValueError("`quote` holds no words")
        return self

    @cached_property
    def words(self) -> tuple[str, ...]:
        """The words of the quotation; empty if chunks are named."""
        return tuple(words_of(self.quote)) if self.quote is not None else ()

    @cached_property
    def spaced(self) -> str:
        """The words with a space before and after each."""
        return _joined(self.words)

    @cached_property
    def key(self) -> str:
        """The short name of the passage: the beginning of its quotation, or its chunks."""
        if self.quote is None:
            return _short(" or ".join(self.any_of), self.any_of)
        return "\N{LEFT DOUBLE QUOTATION MARK}{}\N{RIGHT DOUBLE QUOTATION MARK}".format(
            _short(" ".join(self.quote.split()), self.words)
        )


class SourceText:
    """The words of a source's text, computed once for all passages."""

    def __init__(self, text: str) -> None:
        self._words = words_of(text)
        self._text = _joined(self._words)

    def holds(self, passage: Passage) -> bool:
        """Return True if the text holds the quotation, or at least its share if a border of the text cuts it.

        Words are compared in order and without gaps. A text inside the quotation is cut on both sides.
        """
        quote = passage.words
        if not quote:
            return False
        if passage.spaced in self._text:
            return True
        least = ceil(passage.share * len(quote))
        longest = min(len(quote) - 1, len(self._words))
        if least > longest:
            return False
        inside = len(self._words) < len(quote) and self._text in passage.spaced
        return inside or any(self._is_cut(quote, size) for size in range(least, longest + 1))

    def _is_cut(self, quote: Sequence[str], size: int) -> bool:
        """Return True if the text begins with the quotation's last `size` words or ends with its first."""
        return self._text.startswith(_joined(quote[-size:])) or self._text.endswith(_joined(quote[:size]))


def _joined(words: Sequence[str]) -> str:
    return f" {' '.join(words)} "


def _short(text: str, identity: Sequence[str]) -> str:
    """Return the text, or its beginning with a digest that distinguishes it from texts with the same beginning."""
    if len(text) <= SHOWN:
        return text
    digest = hashlib.sha256("\n".join(identity).encode()).hexdigest()[:6]
    return f"{text[:SHOWN].rstrip()}\N{HORIZONTAL ELLIPSIS} [{digest}]"
