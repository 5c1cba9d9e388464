"""Pairs of sets that are alike."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaltrack.golden.lint.alike import MAX_COMPARED, similar_pairs

SETS = st.lists(st.frozensets(st.integers(0, 12), max_size=9), max_size=MAX_COMPARED // 3)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(SETS, st.sampled_from([0.5, 0.8, 0.9, 1.0]))
def test_the_pairs_are_those_of_comparing_every_pair(sets: list[frozenset[int]], least: float) -> None:
    every = {
        (one, other): len(sets[one] & sets[other]) / len(sets[one] | sets[other])
        for other in range(len(sets))
        for one in range(other)
        if sets[one] and sets[other]
    }
    pairs = {(one, other): similarity for one, other, similarity in similar_pairs(sets, least)}
    assert pairs == pytest.approx({pair: value for pair, value in every.items() if value >= least - 1e-9})


def test_of_thousands_of_copies_not_all_pairs_are_listed() -> None:
    pairs = list(similar_pairs([frozenset(range(30))] * 2000, 0.9))
    assert {other for _, other, _ in pairs} == set(range(1, 2000))
    assert len(pairs) <= 2000 * MAX_COMPARED
