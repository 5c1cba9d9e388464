"""Computes the word diff of two texts, and shortens the unchanged parts."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from itertools import groupby
from operator import itemgetter
from typing import Literal

Piece = tuple[Literal["same", "removed", "added"], str]
"""A piece of text, and the side that has it."""

MAX_WORDS = 1000
"""Words of each side that are matched. The time of difflib grows with the product of both sides."""

_PUNCTUATION = ".,;:!?)\\]}\"'»”’"
_CHARACTER = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORDS = re.compile(
    rf"\s*(?:[{_CHARACTER}][\u3099\u309a\ufe00-\ufe0f]*|[^\s{_CHARACTER}]*[^\s{_CHARACTER}{_PUNCTUATION}]|[{_PUNCTUATION}]+)"
)
"""Words with the space before them. Chinese and Japanese, which have no spaces, are split into characters."""


def word_diff(before: str, after: str) -> list[Piece]:
    """Return how `before` becomes `after`: runs of words that are the same, removed or added.

    Words are separated by white space, and punctuation at the end of a word is a separate word. White space is ignored:
    each run of it, or the beginning of a text, becomes one line break if it holds one, else one space. All pieces that
    are not `added` form the words of `before`; all that are not `removed` form `after`.

    Time is bounded: between the first and the last difference, at most `MAX_WORDS` of each side are matched. The rest
    is one replacement.
    """
    old, new = _words(before), _words(after)
    old_keys, new_keys = [word.lstrip() for word in old], [word.lstrip() for word in new]
    start = _common(old_keys, new_keys)
    end = _common(old_keys[start:][::-1], new_keys[start:][::-1])
    old_end, new_end = len(old) - end, len(new) - end
    old_cut, new_cut = min(old_end, start + MAX_WORDS), min(new_end, start + MAX_WORDS)
    pieces: list[Piece] = [("same", "".join(new[:start]))]
    matcher = SequenceMatcher(None, old_keys[start:old_cut], new_keys[start:new_cut])
    for kind, i, j, m, n in matcher.get_opcodes():
        added = "".join(new[start + m : start + n])
        if kind == "equal":
            pieces.append(("same", added))
        else:
            pieces += [("removed", "".join(old[start + i : start + j])), ("added", added)]
    pieces += [("removed", "".join(old[old_cut:old_end])), ("added", "".join(new[new_cut:new_end]))]
    pieces.append(("same", "".join(new[new_end:])))
    return list(_joined(pieces))


def condensed(pieces: Iterable[Piece], context: int = 80, longest: int = 400, total: int = 1500) -> Iterator[Piece]:
    """Yield the changes with the text around them. An ellipsis marks omitted text.

    Args:
        pieces: From `word_diff`.
        context: Characters of unchanged text kept before and after a change.
        longest: Characters kept of one removed or added piece.
        total: Characters after which the rest is left out.
    """
    all_pieces = list(pieces)
    for place, (kind, text) in enumerate(all_pieces):
        if total <= 0:
            yield "same", "…"
            return
        if kind == "same":
            head = context if place > 0 else 0
            tail = context if place < len(all_pieces) - 1 else 0
            text_shown = _middle_out(text, head, tail)
        else:
            text_shown = text if len(text) <= longest else text[: longest - 1] + "…"
        total -= len(text_shown)
        yield kind, text_shown


def _middle_out(text: str, head: int, tail: int) -> str:
    """Return the first `head` and the last `tail` characters, cut at the ends of words if there are any."""
    if len(text) <= head + tail + 3:
        return text
    first, last = text[:head], text[len(text) - tail :]
    first = first.rpartition(" ")[0] or first
    last = last.partition(" ")[2] or last
    return f"{first} … {last}" if head else f" … {last}"


def _words(text: str) -> list[str]:
    return [f"{_space(word)}{word.lstrip()}" for word in _WORDS.findall(f" {text.strip()}")]


def _space(word: str) -> str:
    """Return the space before a word as one character; empty if there is none."""
    before = word[: len(word) - len(word.lstrip())]
    return "\n" if "\n" in before else before[:1] and " "


def _common(old: list[str], new: list[str]) -> int:
    """Return the number of equal words at the start."""
    shared = min(len(old), len(new))
    return next((place for place in range(shared) if old[place] != new[place]), shared)


def _joined(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Yield neighbours of one kind as one piece; no piece is empty."""
    for kind, group in groupby((piece for piece in pieces if piece[1]), key=itemgetter(0)):
        yield kind, "".join(text for _, text in group)
