"""What changed between two texts, word by word."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from difflib import SequenceMatcher
from itertools import groupby
from typing import Literal

Piece = tuple[Literal["same", "removed", "added"], str]
"""A stretch of text, and on which side it stands."""

MAX_WORDS = 1000
"""Words of each side that are matched with one another; difflib's time grows with their product."""

_PUNCTUATION = ".,;:!?)]}\"'»”’"
_CHARACTER = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_PARTS = re.compile(rf"[{_CHARACTER}][\u3099\u309a\ufe00-\ufe0f]*|[^{_CHARACTER}]+")
"""Chinese and Japanese put no space between words: there, each character is one, with the marks that belong to it."""


def word_diff(before: str, after: str) -> list[Piece]:
    """How `before` becomes `after`: stretches of words that are the same, removed or added.

    A word is what stands between white space, and punctuation at its end is a word of its own. White space is no word:
    texts that differ in nothing else are the same, and each run of it, or the end of a text, comes back as one space.
    The pieces that are not `added`, put together, are the words of `before`; those that are not `removed`, of `after`.

    Time is bounded for texts of any length: of what lies between the first and the last difference, `MAX_WORDS` of each
    side are matched, and what is beyond is shown as one replacement.
    """
    old, new = list(_words(before)), list(_words(after))
    old_keys, new_keys = [word.rstrip() for word in old], [word.rstrip() for word in new]
    start = _common(old_keys, new_keys)
    end = _common(old_keys[start:][::-1], new_keys[start:][::-1])
    old_end, new_end = len(old) - end, len(new) - end
    old_cut, new_cut = min(old_end, start + MAX_WORDS), min(new_end, start + MAX_WORDS)
    pieces: list[Piece] = [("same", "".join(new[:start]))]
    matcher = SequenceMatcher(None, old_keys[start:old_cut], new_keys[start:new_cut])
    for kind, i, j, m, n in matcher.get_opcodes():
        if kind == "equal":
            pieces.append(("same", "".join(new[start + m : start + n])))
        else:
            added = "".join(new[start + m : start + n])
            pieces.append(("removed", _apart(old, start + i, start + j, pieces[-1][1], added)))
            pieces.append(("added", added))
    pieces.append(("removed", "".join(old[old_cut:old_end])))
    pieces.append(("added", "".join(new[new_cut:new_end])))
    pieces.append(("same", "".join(new[new_end:])))
    return list(_joined(pieces))


def condensed(pieces: Iterable[Piece], context: int = 80, longest: int = 400, total: int = 1500) -> Iterator[Piece]:
    """The changes with what stands around them; what is left out is an ellipsis.

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
            text_shown = text if len(text) <= longest else text[: longest - 1] + "… "
        total -= len(text_shown)
        yield kind, text_shown


def _middle_out(text: str, head: int, tail: int) -> str:
    """The first `head` and the last `tail` characters, at the ends of words where there are any."""
    if len(text) <= head + tail + 3:
        return text
    first, last = text[:head], text[len(text) - tail :]
    first = first.rpartition(" ")[0] or first
    last = last.partition(" ")[2] or last
    return f"{first} … {last}".lstrip()


def _words(text: str) -> Iterator[str]:
    """The words, each with the space behind it if there is one."""
    for chunk in text.split():
        core = chunk.rstrip(_PUNCTUATION)
        parts = _PARTS.findall(core)
        parts += [chunk[len(core) :]] if len(core) < len(chunk) else []
        yield from parts[:-1]
        yield parts[-1] + " "


def _apart(old: list[str], first: int, last: int, before: str, added: str) -> str:
    """The removed words, with a space where one stood before them or where they would run into what was added."""
    text = "".join(old[first:last])
    if not text:
        return text
    stood_apart = first > 0 and old[first - 1].endswith(" ")
    runs_on = stood_apart and text[-1].isalnum() and added[:1] not in _PUNCTUATION
    return f"{' ' * (stood_apart and before[-1:].isalnum())}{text}{' ' * runs_on}"


def _common(old: list[str], new: list[str]) -> int:
    """How many words are the same from the start."""
    shared = min(len(old), len(new))
    return next((place for place in range(shared) if old[place] != new[place]), shared)


def _joined(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Neighbours of one kind as one piece, of a replacement what was removed first; none empty."""
    kinds: tuple[Literal["removed", "added"], ...] = ("removed", "added")
    for same, group in groupby((piece for piece in pieces if piece[1]), key=lambda piece: piece[0] == "same"):
        members = list(group)
        if same:
            yield "same", "".join(text for _, text in members)
            continue
        for kind in kinds:
            if text := "".join(text for member, text in members if member == kind):
                yield kind, text
