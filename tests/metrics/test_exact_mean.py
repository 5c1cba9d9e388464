"""Sums that are added up together."""

from __future__ import annotations

from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from evaltrack.metrics.exact_mean import BITS, ExactMean, exact_sum

finite = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(finite))
def test_a_sum_is_exact(values: list[float]) -> None:
    """From the smallest float to the largest."""
    assert Fraction(exact_sum(values), 1 << BITS) == sum(map(Fraction, values))


@given(st.lists(finite, min_size=1, max_size=40), st.integers(1, 40))
def test_a_mean_of_sums_is_that_of_their_values(values: list[float], size: int) -> None:
    """Whatever was added up together."""
    alone, together = ExactMean(), ExactMean()
    for value in values:
        alone.add(value)
    for start in range(0, len(values), size):
        part = values[start : start + size]
        together.add_sum(exact_sum(part), len(part))
    assert (alone.count, alone.mean) == (together.count, together.mean)
