"""An amount with its noun, and the first of many names, as people read them."""

from __future__ import annotations

from collections.abc import Sequence


def count(amount: int, noun: str, plural: str = "") -> str:
    """``1 question``, ``100,000 questions``; `plural` where it is not the noun with an s."""
    return f"{amount:,} {noun if amount == 1 else plural or f'{noun}s'}"


def verb(amount: int, of_one: str, of_several: str) -> str:
    """The word that goes with the amount: ``was`` of 1, ``were`` of 0 and of several."""
    return of_one if amount == 1 else of_several


def first_of(names: Sequence[str], most: int, total: int | None = None) -> str:
    """``q1, q2, q3, …``: the first names, and that there are more; `total`, where `names` does not hold all of them."""
    total = len(names) if total is None else total
    return ", ".join(names[:most]) + ", …" * (total > min(most, len(names)))
