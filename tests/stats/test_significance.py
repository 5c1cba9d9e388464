"""Exact tests against scipy, against enumeration, and for their level."""

from __future__ import annotations

from itertools import combinations, product
from math import erfc, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom, fisher_exact, nbinom, permutation_test

from evaltrack.stats import significance
from evaltrack.stats.significance import (
    PairedTest,
    flaky_by_chance,
    holm,
    luck,
    p_of_lost_passes,
    sign_flip,
    worse_than_record,
)
from tests.files import data


def listed(differences: list[float]) -> float:
    seen = abs(sum(differences)) - 1e-9
    sums = [
        abs(sum(s * d for s, d in zip(signs, differences, strict=True)))
        for signs in product((-1, 1), repeat=len(differences))
    ]
    return sum(each >= seen for each in sums) / len(sums)


@pytest.mark.parametrize(
    "differences",
    [[-0.5] * 6, [-0.2, 0.4, 0.1, -0.6, -0.9], [1.0, -1.0, -1.0], [-1 / 3, -1 / 3, 1 / 2, -1 / 5, 0.25, 0.25, -0.75]],
)
def test_every_choice_of_signs_is_counted(differences: list[float]) -> None:
    """With or without ties: the p-value of a list of all of them; pairs without a difference change nothing."""
    found = sign_flip([0.0] * len(differences), differences)
    assert found.p == pytest.approx(listed(differences), abs=1e-12)
    assert sign_flip([0.5] * 3 + [0.0] * len(differences), [0.5] * 3 + differences) == found


def test_it_is_scipys_permutation_test() -> None:
    draw = np.random.default_rng(3)
    before, after = draw.integers(0, 6, (2, 60)) / 5
    after = np.where(draw.random(60) < 0.4, after, before)

    def mean(differences: np.ndarray, axis: int) -> np.ndarray:
        return np.asarray(differences.mean(axis=axis))

    theirs = permutation_test((after - before,), mean, permutation_type="samples", n_resamples=100_000, rng=1).pvalue
    assert sign_flip(before, after).p == pytest.approx(theirs, abs=0.01)


def test_fewer_than_six_changes_show_nothing() -> None:
    assert significance.MIN_CHANGED == 6
    assert sign_flip([1.0] * 50, [0.5] * 50).p < 1e-12
    assert sign_flip([1.0] * 5 + [0.5] * 95, [0.0] * 5 + [0.5] * 95).p == pytest.approx(0.0625)
    assert sign_flip([1.0] * 6 + [0.5] * 94, [0.0] * 6 + [0.5] * 94).p == pytest.approx(0.03125)
    assert sign_flip([0.5] * 9, [0.5] * 9) == PairedTest(1.0, 0)


@pytest.mark.parametrize(("given", "adjusted"), data("metrics.json")["holm"])
def test_holm_steps_down(given: dict[str, float], adjusted: dict[str, float]) -> None:
    """The smallest p times m, the next times m - 1, never falling, at most 1; names keep their order."""
    found = holm(given)
    assert found == pytest.approx(adjusted, rel=1e-12)
    assert list(found) == list(given)


@pytest.mark.parametrize("n", [40, 4000])
def test_many_distinct_differences_agree_with_the_t_test(n: int) -> None:
    """Where all differences are distinct it is near Student's t, however it is had."""
    from scipy.stats import ttest_1samp

    differences = np.random.default_rng(5).normal(0, 1, n)
    differences += 2.2 / np.sqrt(n) - differences.mean()
    found = sign_flip(np.zeros(n), differences)
    assert found.changed == n
    assert found.p == pytest.approx(ttest_1samp(differences, 0).pvalue, abs=0.006)


@pytest.mark.parametrize(("n", "largest", "is_normal"), [(1999, 1, False), (2000, 1, True), (2000, 5, False)])
def test_the_sum_of_two_thousand_changes_is_taken_as_normal(n: int, largest: int, is_normal: bool) -> None:
    """If none dominates the others."""
    differences = np.resize(np.linspace(0.05, 1, 20), n) * np.where(np.arange(n) % 21 < 10, -1, 1)
    differences[0] = largest
    normal = erfc(differences.sum() / sqrt(2 * (differences**2).sum()))
    tolerance = 1e-9 if is_normal else 1e-6
    assert (sign_flip(np.zeros(n), differences).p == pytest.approx(normal, rel=tolerance)) is is_normal


def test_a_loss_that_no_drawn_sum_reaches_has_the_least_p() -> None:
    assert sign_flip(np.zeros(21), np.linspace(1, 1.2, 21)).p == 1 / 50_001


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_the_scale_of_the_differences_does_not_matter(scale: float) -> None:
    for n in (60, 3000):
        differences = np.random.default_rng(7).normal(0.02, 1, n)
        expected = sign_flip(np.zeros(n), differences)
        assert sign_flip(np.zeros(n), differences * scale).p == pytest.approx(expected.p, abs=1e-9)


def test_it_keeps_its_level() -> None:
    """Of 1,000 sets whose sides were swapped by coin at most some 5 % are called different."""
    draw, n = np.random.default_rng(12), 12
    called = 0
    for _ in range(1000):
        differences = draw.choice([0.0, 0.2, 0.5, 1.0], n) * draw.choice([-1, 1], n)
        called += sign_flip(np.zeros(n), differences).p < 0.05
    assert called / 1000 < 0.05 + 3 * (0.05 * 0.95 / 1000) ** 0.5


def test_questions_that_fail_at_times_explain_as_many_broken_ones() -> None:
    """Thirty trials of ten questions, of which three failed: one fails at once, three rarely do, and none never."""
    passes, trials = np.array([[2] * 3 + [3] * 7 + [1, np.nan], [0] * 12]), np.array([[3] * 12, [1] * 12])
    assert flaky_by_chance(1, passes, trials) == pytest.approx(1 - np.exp(-1))
    assert flaky_by_chance(3, passes, trials) == pytest.approx(1 - np.exp(-1) * 2.5)
    assert flaky_by_chance(1, passes, trials * [[1], [3]]) == 0
    assert flaky_by_chance(1, np.ones((2, 12)), np.ones((2, 12))) == 0


@pytest.mark.parametrize(
    "counts", [(5, 5, 0, 5), (3, 5, 1, 7), (0, 4, 2, 4), (10, 30, 0, 3), (2, 2, 0, 1), (9, 9, 0, 0)]
)
def test_a_record_is_held_against_by_fishers_test(counts: tuple[int, int, int, int]) -> None:
    failed, times, before, of = counts
    theirs = fisher_exact([[failed, times - failed], [before, of - before]], alternative="greater").pvalue
    assert worse_than_record(*counts) == pytest.approx(theirs, rel=1e-9)


@given(st.dictionaries(st.text(max_size=3), st.floats(0, 1), min_size=1, max_size=8), st.integers(0, 20))
def test_tests_that_the_data_chose_are_corrected_for_all_of_which_they_are(
    p_values: dict[str, float], more: int
) -> None:
    """As Holm's correction of all of them, where those that were not looked at have p = 1."""
    others = {f"other {number}": 1.0 for number in range(more)}
    whole = holm({**p_values, **others})
    assert holm(p_values, len(p_values) + more) == {name: whole[name] for name in p_values}


def swapped(passes: list[tuple[int, int]], trials: list[tuple[int, int]]) -> float:
    outcomes = [[1] * sum(each) + [0] * (sum(of) - sum(each)) for each, of in zip(passes, trials, strict=True)]
    ways = product(*(list(combinations(each, of[0])) for each, of in zip(outcomes, trials, strict=True)))
    sums = [sum(map(sum, way)) for way in ways]
    return sum(each >= sum(was for was, _ in passes) for each in sums) / len(sums)


@pytest.mark.parametrize(
    ("passes", "trials"),
    [
        ([(3, 1), (3, 1), (2, 2), (3, 3)], [(3, 3)] * 4),
        ([(5, 0), (5, 1), (4, 1)], [(5, 1)] * 3),
        ([(0, 1), (1, 0), (1, 0), (3, 2)], [(1, 1), (1, 1), (1, 1), (3, 5)]),
    ],
)
def test_every_swap_of_trials_is_counted(passes: list[tuple[int, int]], trials: list[tuple[int, int]]) -> None:
    found = p_of_lost_passes(np.array(passes).T, np.array(trials).T)
    assert found == pytest.approx(swapped(passes, trials), abs=1e-12)


def test_of_single_trials_it_is_mcnemars_test() -> None:
    passes = np.array([[1] * 12 + [0] * 3 + [1] * 5, [0] * 12 + [1] * 3 + [1] * 5])
    assert p_of_lost_passes(passes, np.ones_like(passes)) == pytest.approx(binom.sf(11, 15, 0.5), abs=1e-12)


@pytest.mark.parametrize(("consistent", "lucky", "draws"), [(1, 0, 1), (3, 2, 4), (20, 30, 2), (1, 5, 9)])
def test_luck_is_a_negative_binomial(consistent: int, lucky: int, draws: int) -> None:
    theirs = nbinom.sf(consistent - 1, lucky + 0.5, draws / (draws + 1))
    assert luck(consistent, lucky, draws) == pytest.approx(theirs, rel=1e-9)
