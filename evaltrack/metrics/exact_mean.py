"""A mean that is exact until it is rounded once, so that it does not depend on the order of its values."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

BITS = 1074
"""The smallest float is 2 to the power of minus this, and every float a whole multiple of it."""


def exact_sum(values: Iterable[float]) -> int:
    """The sum of finite values, in units of the smallest float."""
    total = 0
    for value in values:
        if value:
            numerator, denominator = value.as_integer_ratio()
            total += numerator << (BITS + 1 - denominator.bit_length())
    return total


@lru_cache(maxsize=4096)
def exact(value: float) -> int:
    """One finite value in units of the smallest float; few values stand for most scores."""
    return exact_sum((value,))


def exact_sum_of_counts(counts: Iterable[int]) -> int:
    """The sum of whole numbers that floats hold exactly, in units of the smallest float."""
    return sum(counts) << BITS


class ExactMean:
    """The mean of what was added so far."""

    def __init__(self) -> None:
        self.count = 0
        self._total = 0

    def add(self, value: float) -> None:
        """Add one finite value."""
        self.add_sum(exact(value), 1)

    def add_sum(self, total: int, count: int) -> None:
        """Add `count` values whose `exact_sum` is `total`."""
        self._total += total
        self.count += count

    @property
    def mean(self) -> float:
        """The mean of at least one value, rounded once."""
        return self._total / (self.count << BITS)
