"""Intervals, exact tests and adjustments, against scipy, against whole enumerations and against hand-made tables."""

from __future__ import annotations

import math
import subprocess
import sys
import tracemalloc
from itertools import product
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import bootstrap as scipy_bootstrap
from scipy.stats import t as student_t

from evaltrack.stats import intervals
from evaltrack.stats.intervals import Interval, paired_interval, quantile, quantile_interval, share_interval, swap_test
from tests.conftest import REPO

Floats = NDArray[np.float64]
Pairs = tuple[Floats, Floats]


def interval(pairs: tuple[Any, Any], **options: Any) -> Interval:
    found = paired_interval(*pairs, **options)
    assert found is not None
    return found


def resampled(pairs: tuple[Any, Any], resamples: int = 10_000, seed: int = 0) -> Interval:
    """The BCa interval, whatever the number of pairs."""
    values, counts, rounding = intervals.distinct(*pairs)
    return Interval(*intervals.bca(values, counts, rounding, resamples, seed), "bca")


def of_scipy(pairs: Pairs) -> tuple[float, float]:
    def mean_difference(candidate: Floats, baseline: Floats, axis: int) -> Floats:
        return np.asarray(np.mean(candidate - baseline, axis=axis))

    found = scipy_bootstrap(
        (pairs[1], pairs[0]),
        mean_difference,
        paired=True,
        method="BCa",
        n_resamples=10_000,
        batch=1000,
        rng=np.random.default_rng(5),
    ).confidence_interval
    return float(found.low), float(found.high)


def monte_carlo(pairs: Pairs) -> float:
    """How far two such intervals may be apart: five times their Monte Carlo error, and one step where there are steps.

    Of 10,000 resamples an end is known to 0.037 standard errors of the mean (0.027 by the quantile, 0.025 by the
    correction of bias), and the difference of two to 0.052.
    """
    differences = pairs[1] - pairs[0]
    gaps = np.diff(np.unique(differences.round(9)))
    step = float(gaps.min()) if len(gaps) else 0.0
    return 0.26 * float(differences.std()) / math.sqrt(len(differences)) + step / len(differences)


def flips(n: int, worse: int, better: int) -> Pairs:
    before, after = np.ones(n), np.ones(n)
    after[:worse] = 0
    before[worse : worse + better] = 0
    return before, after


def graded(n: int, levels: int, seed: int = 1) -> Pairs:
    """Scores in steps, about half of them unchanged and the rest lower more often than higher."""
    draw = np.random.default_rng(seed)
    before = draw.integers(0, levels + 1, n)
    moved = before + np.where(draw.random(n) < 0.5, 0, draw.integers(-2, 2, n))
    return before / levels, moved.clip(0, levels) / levels


def times(n: int, outlier: float = 1.0) -> Pairs:
    """Seconds, all distinct, with a long tail and perhaps one far out."""
    draw = np.random.default_rng(2)
    before, after = draw.lognormal(0, 1, n), draw.lognormal(0.05, 1.2, n)
    after[0] *= outlier
    return before, after


DATA = {
    "flips": flips(60, 7, 2),
    "one flip": flips(500, 1, 0),
    "five pairs": (np.array([0.2, 0.9, 0.5, 1.0, 0.3]), np.array([0.1, 0.95, 0.1, 0.2, 0.35])),
    "recall in fifths": graded(200, 5),
    "small recall in fifths": graded(20, 5),
    "reciprocal ranks": tuple(1 / (1 + np.random.default_rng(3).geometric(0.4, (2, 400)))),
    "distinct": times(500),
}


@pytest.mark.parametrize("name", DATA)
def test_the_interval_is_scipys(name: str) -> None:
    pairs = DATA[name]
    found = resampled(pairs, seed=1)
    assert (found.low, found.high) == pytest.approx(of_scipy(pairs), rel=0, abs=monte_carlo(pairs))
    assert found.low < found.high


def test_a_tie_is_a_tie_in_any_unit() -> None:
    """In tenths, whose sums are rounded, as many resamples equal what was observed as in whole numbers."""
    whole = np.array([-1, -1, -1, 2, 7, *[0] * 10, 3, 3, -6, 1, 1], dtype=float)
    zeros = np.zeros(len(whole))
    found, tenths = interval((zeros, whole)), interval((zeros, whole / 10))
    assert (10 * tenths.low, 10 * tenths.high) == pytest.approx((found.low, found.high), rel=1e-12)


@pytest.mark.parametrize(
    ("values", "shares", "n", "held"),
    [
        ([-1.0, -0.4, 0.0, 0.2], [0.08, 0.12, 0.65, 0.15], 60, 0.91),
        (-np.random.default_rng(1).exponential(0.1, 500), None, 7, 0.955),
        (-np.random.default_rng(1).exponential(0.1, 500), None, 20, 0.94),
    ],
    ids=["steps", "few that are skewed", "some that are skewed"],
)
def test_intervals_hold_the_truth_as_often_as_they_say(values: Any, shares: Any, n: int, held: float) -> None:
    """Of 400 sets of questions with skewed differences, about 95 % of the intervals hold the true mean."""
    draw, truth = np.random.default_rng(7), float(np.average(values, weights=shares))
    sets = (interval((np.zeros(n), draw.choice(values, n, p=shares)), resamples=300) for _ in range(400))
    assert held <= sum(each.low <= truth <= each.high for each in sets) / 400 <= 0.985


def test_the_same_seed_gives_the_same_bits_in_any_order_and_process() -> None:
    pairs, many, order = graded(200, 5), times(2100), np.random.default_rng(4).permutation(2100)
    first, other = interval(pairs), interval(pairs, seed=1)
    assert first == interval((pairs[0][::-1], pairs[1][::-1])) == interval(tuple(map(list, pairs)))
    assert interval((many[0][order], many[1][order]), resamples=500) == interval(many, resamples=500)
    assert first != other
    assert (first.low, first.high) == pytest.approx((other.low, other.high), rel=0, abs=monte_carlo(pairs))
    code = "from evaltrack.stats.intervals import paired_interval\n"
    code += f"print(paired_interval({pairs[0].tolist()}, {pairs[1].tolist()}))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=REPO)
    assert ended.stdout == f"{first}\n"


def test_as_many_better_as_worse_gives_an_interval_around_zero() -> None:
    """Resamples that equal what was observed count half, so that balanced flips lean to neither side."""
    found = resampled(flips(30, 2, 2), resamples=100_000)
    assert found == Interval(-found.high, found.high, "bca")


@pytest.mark.parametrize("unit", [2.0**-500, 2.0**40, 2.0**500])
@pytest.mark.parametrize("pairs", [flips(60, 7, 2), times(20), times(500), times(2100)])
def test_the_unit_of_a_score_changes_nothing(unit: float, pairs: Pairs) -> None:
    found, other = interval(pairs, resamples=500), interval((pairs[0] * unit, pairs[1] * unit), resamples=500)
    assert other == Interval(found.low * unit, found.high * unit, found.method)


def test_differences_that_only_rounding_tells_apart_are_one() -> None:
    """0.6 - 0.4 and 0.4 - 0.2 differ in their last bits, and are one difference here, as everywhere on paper."""
    before, after = [0.4, 0.2, 0.8, 0.1], [0.6, 0.4, 1.0, 0.3]
    assert len(set(np.subtract(after, before).tolist())) > 1
    values, counts, _ = intervals.distinct(before, after)
    assert (values.tolist(), counts.tolist()) == ([pytest.approx(0.2, abs=1e-15)], [4])
    fifths_before, fifths_after = graded(200, 5)
    differences = fifths_after - fifths_before
    fifths = np.round(differences * 5) / 5
    assert len(np.unique(differences)) > len(np.unique(fifths))
    found, clean = interval((fifths_before, fifths_after)), interval((np.zeros(200), fifths))
    assert (found.low, found.high) == pytest.approx((clean.low, clean.high), rel=1e-12)


@pytest.mark.parametrize("n", [0, 1, 4])
def test_few_pairs_have_no_interval(n: int) -> None:
    assert paired_interval([1.0] * n, [0.5] * n, span=1) is None
    assert paired_interval([1.0, 0.5, 0.1, 0.2, 0.9][:n], [0.5, 0.5, 0.3, 0.2, 0.1][:n]) is None
    assert interval(([1.0] * 5, [0.5] * 5), span=1).method == "adjusted-t"


def test_that_nothing_differed_is_no_certainty() -> None:
    """Of 50 questions that stayed some in a hundred may still differ; of scores without bound nothing can be said."""
    same = [0.5] * 50
    found = interval((same, same), span=1)
    assert found.low == -found.high
    assert 0.03 < found.high < 0.08
    assert paired_interval(same, same) is None


FOUR_OF_FIVE = np.zeros(5), np.array([0.1, 0.1, 0.2, 0.4, 0.7])


@pytest.mark.parametrize(
    ("pairs", "method"),
    [
        (flips(100, 25, 5), "bca"),
        (flips(99, 25, 5), "adjusted-t"),
        (flips(100, 24, 5), "adjusted-t"),
        (times(2100), "student-t"),
        (times(20), "bootstrap-t"),
        (FOUR_OF_FIVE, "bootstrap-t"),
    ],
)
def test_the_method_follows_from_the_pairs(pairs: Pairs, method: str) -> None:
    """Many pairs and changes are resampled; few are by ratios, where hardly two are alike; else two pairs are added."""
    assert interval(pairs, resamples=20).method == method


@pytest.mark.parametrize("sign", [1, -1])
def test_an_interval_of_few_distinct_differences_is_wider_than_students(sign: int) -> None:
    was, now = times(20)
    differences = sign * (now - was)
    found = interval((np.zeros(20), differences), resamples=500)
    low, high = student_t.interval(0.95, 19, differences.mean(), differences.std(ddof=1) / np.sqrt(20))
    assert found.method == "bootstrap-t"
    assert (found.low < low, found.high > high) == (True, True)


def test_thousands_of_different_differences_have_an_interval_near_scipys() -> None:
    pairs = times(2100)
    found = interval(pairs)
    assert (found.low, found.high) == pytest.approx(of_scipy(pairs), rel=0, abs=monte_carlo(pairs))


def test_a_million_pairs_need_little_memory() -> None:
    """1,000,000 pairs of some 700 distinct differences: the interval is near the normal one, in bounded memory."""
    draw = np.random.default_rng(6)
    before = np.zeros(1_000_000)
    after = draw.choice(np.linspace(-1, 1, 701), 1_000_000, p=draw.dirichlet(np.ones(701)))
    tracemalloc.start()
    found = interval((before, after), resamples=1000)
    peak = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    error = float(after.std()) / 1000
    assert found.method == "bca"
    assert (found.low, found.high) == pytest.approx(
        (after.mean() - 1.96 * error, after.mean() + 1.96 * error), rel=0, abs=0.2 * error
    )
    assert peak < 150


@pytest.mark.parametrize(
    ("share", "n", "low", "high"),
    [(0.0, 10, 0.0, 0.2775), (0.5, 10, 0.2366, 0.7634), (1.0, 1, 0.2065, 1.0), (0.9, 1000, 0.8799, 0.9171)],
)
def test_the_interval_of_a_share_is_wilsons(share: float, n: int, low: float, high: float) -> None:
    assert share_interval(share, n) == pytest.approx((low, high), abs=1e-4)


@pytest.mark.parametrize("span", [None, 0.75, 1, 3])
@pytest.mark.parametrize(
    "differences",
    [
        [-0.5, 0, 0, 0, 0],
        [0.25, 0, 0, 0, 0, 0, 0.5],
        [-0.75, -0.5, 0.25, 0, 0, 0.25],
        [0.5] * 5,
        [0.0] * 9,
        [-0.25] * 30 + [0.5] * 4 + [0.0] * 30,
    ],
)
def test_few_changes_are_adjusted_by_two_pairs(differences: list[float], span: float | None) -> None:
    """Beside the mean as it is over two more pairs stand one change in each direction, larger than any that was seen.

    Each is larger by two changes' share, at most the span and at least the largest; where nothing changed it is the
    span. The pairs count for the mean and its standard error, and not as freedom.
    """
    changes = sum(each != 0 for each in differences)
    if not changes and span is None:
        return
    largest = max(map(abs, differences))
    added = largest * (1 + 2 / changes) if changes else span or 0.0
    added = max(largest, min(added, span or math.inf))
    together = np.array([*differences, added, -added])
    half = student_t.ppf(0.975, len(differences) - 1) * together.std(ddof=1) / math.sqrt(len(together))
    made = interval(([0.0] * len(differences), differences), span=span)
    ends = together.mean() - half, together.mean() + half
    assert made.method == "adjusted-t"
    assert (made.low, made.high) == pytest.approx(np.clip(ends, *((-span, span) if span else (-math.inf, math.inf))))


@pytest.mark.parametrize("n", [1, 2, 10, 19, 20, 21, 100])
@pytest.mark.parametrize("share", [0.5, 0.95, 1.0])
def test_quantiles_are_values_that_were_measured(n: int, share: float) -> None:
    values = np.random.default_rng(n).random(n)
    assert quantile(values, share) == np.quantile(values, share, method="inverted_cdf")


def test_an_interval_needs_values_on_both_sides() -> None:
    values = np.arange(100.0)
    assert quantile_interval(values, values + 1, 0.95, resamples=200) == Interval(1.0, 1.0, "percentile")
    assert quantile_interval(values[:99], values[:99] + 1, 0.95, resamples=200) is None
    assert quantile_interval(values[:10], values[:10] + 1, 0.5, resamples=200) is not None
    assert quantile_interval(values[:9], values[:9] + 1, 0.5, resamples=200) is None


def test_the_interval_holds_the_true_difference() -> None:
    """Of skewed times whose 95th percentile doubles: in at least 88 % of 200 samples, where 95 % is meant."""
    draws, held = np.random.default_rng(1), 0
    true = float(np.exp(0.5 * 1.6448536269514722))
    for seed in range(200):
        was, now = np.exp(0.5 * draws.standard_normal((2, 150)))
        ends = quantile_interval(was, 2 * now, 0.95, resamples=300, seed=seed)
        assert ends is not None
        held += ends.low <= true <= ends.high
    assert held >= 176


def test_every_swap_is_as_likely() -> None:
    draws = np.random.default_rng(2)
    was, now = draws.random(9), draws.random(9) + 0.3
    seen, as_far = abs(quantile(now, 0.5) - quantile(was, 0.5)), 0
    for swap in product((False, True), repeat=9):
        sides = np.where(swap, now, was), np.where(swap, was, now)
        as_far += abs(quantile(sides[1], 0.5) - quantile(sides[0], 0.5)) >= seen - 1e-12
    assert swap_test(was, now, 0.5, resamples=5000) == pytest.approx(as_far / 512, abs=0.015)


def test_the_test_keeps_its_level_and_finds_what_is_large() -> None:
    """Of equal sides at most some 5 % are below 0.05; a side that takes half again as long is."""
    draws = np.random.default_rng(3)
    pairs = [np.exp(draws.standard_normal((2, 60))) for _ in range(100)]
    below = sum(swap_test(was, now, 0.95, resamples=200) < 0.05 for was, now in pairs)
    assert below <= 10
    steady = np.exp(0.1 * draws.standard_normal(60))
    assert swap_test(steady, 1.5 * steady, 0.95, resamples=1000) < 0.01


def test_the_observed_swap_is_counted() -> None:
    steady = np.arange(60.0)
    assert swap_test(steady, steady + 900, 0.5, resamples=999) == 0.001, "no other swap is as far"
    assert swap_test(steady, steady, 0.95, resamples=200) == 1.0


def test_acceleration_moves_both_levels_up_where_resamples_are_skewed() -> None:
    z = 1.959964 / (1 - 0.1 * 1.959964), -1.959964 / (1 + 0.1 * 1.959964)
    expected = [NormalDist().cdf(each) for each in reversed(z)]
    assert intervals._corrected_levels(0.5, 0.1, 1000) == pytest.approx(expected, abs=1e-6)
