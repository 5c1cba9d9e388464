"""What should be retrieved, said so that it outlives the chunks: a quotation, or any one of several chunks."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Sequence
from functools import cached_property
from typing import Annotated

from pydantic import Field, model_validator

from evaltrack.records.base import Key, Record, Text

SHOWN = 80
"""Characters of a quotation by which people know it."""

_LINK_TARGET = re.compile(r"\]\([^)\s]*\)")
_WORD = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]"  # written without spaces
    r"|[^\W\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+"
)


def words_of(text: str) -> list[str]:
    """The words that texts are compared by: Unicode NFKC, case-folded, without punctuation and targets of links.

    A letter of a script that puts no space between words is a word.
    """
    return _WORD.findall(unicodedata.normalize("NFKC", _LINK_TARGET.sub("]", text)).casefold())


class Passage(Record):
    """One thing that should be retrieved: what holds the `quote`, or `any_of` these chunks.

    A chunk whose border cuts the quotation holds it if it has at least the `share` of its words. `source` names the
    page that it was taken from, for people; it decides nothing.
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
        """The words of the quotation; none where chunks are named."""
        return tuple(words_of(self.quote)) if self.quote is not None else ()

    @cached_property
    def key(self) -> str:
        """What the passage is known by: the beginning of its quotation, or its chunks."""
        if self.quote is None:
            return _short(" or ".join(self.any_of), self.any_of)
        return "\N{LEFT DOUBLE QUOTATION MARK}{}\N{RIGHT DOUBLE QUOTATION MARK}".format(
            _short(" ".join(self.quote.split()), self.words)
        )


def _short(text: str, identity: Sequence[str]) -> str:
    """The text, or its beginning and a digest that tells it from others that begin so."""
    if len(text) <= SHOWN:
        return text
    digest = hashlib.sha256("\n".join(identity).encode()).hexdigest()[:6]
    return f"{text[:SHOWN].rstrip()}\N{HORIZONTAL ELLIPSIS} [{digest}]"
