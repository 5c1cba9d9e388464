"""Formats amounts with their nouns, and shortens long texts and lists of names."""

from __future__ import annotations

from collections.abc import Sequence


def count(amount: int, noun: str, plural: str = "") -> str:
    """Return ``1 question`` or ``100,000 questions``. `plural` is needed if it is not the noun with an s."""
    return f"{amount:,} {noun if amount == 1 else plural or f'{noun}s'}"


def verb(amount: int, of_one: str, of_several: str) -> str:
    """Return the verb for the amount: ``was`` for 1, ``were`` for 0 and several."""
    return of_one if amount == 1 else of_several


def cut(text: str, limit: int) -> str:
    """Return at most `limit` characters of the text. A longer text ends in an ellipsis."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def first_of(names: Sequence[str], most: int, total: int | None = None) -> str:
    """Return the first names: ``q1, q2, q3, …``. `total` is the number of all names if `names` does not hold all."""
    total = len(names) if total is None else total
    return ", ".join(names[:most]) + ", …" * (total > min(most, len(names)))
