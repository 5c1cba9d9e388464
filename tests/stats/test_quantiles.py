"""Quantiles of paired values against numpy, against enumeration, and for how often their interval holds."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from evaltrack.stats import quantiles
from evaltrack.stats.quantiles import quantile, quantile_interval, swap_test


@pytest.mark.parametrize("n", [1, 2, 10, 19, 20, 21, 100])
@pytest.mark.parametrize("share", [0.5, 0.95, 1.0])
def test_quantiles_are_values_that_were_measured(n: int, share: float) -> None:
    values = np.random.default_rng(n).random(n)
    assert quantile(values, share) == np.quantile(values, share, method="inverted_cdf")


def test_an_interval_needs_values_on_both_sides() -> None:
    values = np.arange(100.0)
    assert quantile_interval(values, values + 1, 0.95, resamples=200) is not None
    assert quantile_interval(values[:99], values[:99] + 1, 0.95) is None
    assert quantile_interval(values[:10], values[:10] + 1, 0.5, resamples=200) is not None
    assert quantile_interval(values[:9], values[:9] + 1, 0.5) is None


def test_the_interval_holds_the_true_difference() -> None:
    """Of skewed times whose 95th percentile doubles: in at least 88 % of 200 samples, where 95 % is meant."""
    draws, held = np.random.default_rng(1), 0
    true = float(np.exp(0.5 * 1.6448536269514722))
    for seed in range(200):
        was, now = np.exp(0.5 * draws.standard_normal((2, 150)))
        ends = quantile_interval(was, 2 * now, 0.95, resamples=300, seed=seed)
        assert ends is not None
        held += ends[0] <= true <= ends[1]
    assert held >= 176


def test_every_swap_is_as_likely() -> None:
    draws = np.random.default_rng(2)
    was, now = draws.random(9), draws.random(9) + 0.3
    seen, as_far = abs(quantile(now, 0.5) - quantile(was, 0.5)), 0
    for swap in product((False, True), repeat=9):
        sides = np.where(swap, now, was), np.where(swap, was, now)
        as_far += abs(quantile(sides[1], 0.5) - quantile(sides[0], 0.5)) >= seen - 1e-12
    assert swap_test(was, now, 0.5) == pytest.approx(as_far / 512, abs=0.015)


def test_the_test_keeps_its_level_and_finds_what_is_large() -> None:
    """Of equal sides at most some 5 % are below 0.05; a side that takes half again as long is."""
    draws = np.random.default_rng(3)
    pairs = [np.exp(draws.standard_normal((2, 60))) for _ in range(200)]
    below = sum(swap_test(was, now, 0.95, resamples=200) < 0.05 for was, now in pairs)
    assert below <= 18
    steady = np.exp(0.1 * draws.standard_normal(60))
    assert swap_test(steady, 1.5 * steady, 0.95, resamples=1000) < 0.01
    assert swap_test(steady, steady, 0.95, resamples=200) == 1.0


def test_of_very_many_pairs_fewer_samples_are_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    assert quantiles._samples(500_000, 10_000) == 400
    assert quantiles._samples(200, 10_000) == 10_000
    monkeypatch.setattr(quantiles, "FEWEST", 10)
    assert swap_test(np.zeros(50_000_000 // 1000), np.ones(50_000_000 // 1000), 0.5, resamples=5) <= 1
