"""An amount with its noun, as people read it."""

from __future__ import annotations


def count(amount: int, noun: str, plural: str = "") -> str:
    """``1 question``, ``100,000 questions``; `plural` where it is not the noun with an s."""
    return f"{amount:,} {noun if amount == 1 else plural or f'{noun}s'}"


def verb(amount: int, of_one: str, of_several: str) -> str:
    """The word that goes with the amount: ``was`` of 1, ``were`` of 0 and of several."""
    return of_one if amount == 1 else of_several
