"""Which chunks of a corpus questions are drafted from, and their category. Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from itertools import zip_longest
from typing import TypeVar

from evaltrack.golden.corpus import Chunk, by_page

_WORDS = {
    "installation": "install installing installation setup upgrade upgrading download requirements",
    "configuration": "configure configuring configuration config settings setting options option",
    "troubleshooting": "troubleshooting troubleshoot error errors problem problems fail fails failure",
    "api": "api function functions method methods class classes parameters arguments endpoint",
}
CATEGORY_WORDS = {name: frozenset(words.split()) for name, words in _WORDS.items()}
"""Words of a heading by which its category is known; other headings are about usage."""

LEAST_WORDS = 20
"""Words of a chunk, below which hardly anything can be asked of it."""

T = TypeVar("T")


def category_of(heading: str) -> str:
    """The category of what stands under a heading."""
    words = set(re.findall(r"\w+", heading.casefold()))
    return next((name for name, marks in CATEGORY_WORDS.items() if words & marks), "usage")


def spread(chunks: Iterable[Chunk], number: int) -> list[Chunk]:
    """Chunks with words enough, one of each page in turn; the same each time."""
    fit = [chunk for chunk in chunks if len(chunk.text.split()) >= LEAST_WORDS]
    pages = (_shuffled(enumerate(parts)) for _, parts in _shuffled(by_page(fit).items()))
    return [entry[1] for each in zip_longest(*pages) for entry in each if entry is not None][:number]


def _shuffled(items: Iterable[T]) -> list[T]:
    """In an order that says nothing, the same each time."""
    return sorted(items, key=lambda item: hashlib.sha256(repr(item).encode()).digest())
