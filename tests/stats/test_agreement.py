"""Agreement of two evaluators: by hand, by the definitions in fractions, against scipy, and on published verdicts."""

from __future__ import annotations

import csv
import json
import os
import time
from collections import Counter
from collections.abc import Hashable, Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path
from statistics import mode
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import spearmanr

from evaltrack.stats.agreement import (
    ALL_ONE,
    NO_PAIR,
    NO_UNIT,
    ONE_SIDE,
    Agreement,
    Confusion,
    Figure,
    bias,
    cohen_kappa,
    confusion,
    krippendorff_alpha,
    label_agreement,
    mean_absolute_difference,
    numeric_agreement,
    share_within,
    spearman,
)
from evaltrack.stats.intervals import paired_interval

repeatable = settings(deadline=None, derandomize=True, max_examples=100)

NUMERIC = ["mean_absolute_difference", "share_within", "bias", "quadratic_kappa", "alpha_interval", "spearman"]

GRADES = st.integers(0, 4)
NAMES = ("zebra", "apple", "cat", "dog", "bee")
PAIRS = st.lists(st.tuples(GRADES, GRADES), min_size=1, max_size=30)
GAPPED = st.lists(st.tuples(st.none() | GRADES, st.none() | GRADES), max_size=30)
UNITS = st.lists(st.lists(st.none() | GRADES, max_size=5), max_size=15)


def split(pairs: Sequence[tuple[Any, Any]]) -> tuple[list[Any], list[Any]]:
    """The two sides of pairs."""
    return [a for a, _ in pairs], [b for _, b in pairs]


# by the definitions, in fractions


def kappa_by_definition(pairs: Sequence[tuple[int, int]], weights: str | None) -> Fraction | None:
    """1 - the mean weight of the pairs / that of every `a` with every `b`."""

    def weight(a: int, b: int) -> int:
        return {None: int(a != b), "linear": abs(a - b), "quadratic": (a - b) ** 2}[weights]

    n = len(pairs)
    expected = Fraction(sum(weight(a, b) for (a, _), (_, b) in product(pairs, pairs)), n * n)
    return 1 - Fraction(sum(weight(a, b) for a, b in pairs), n) / expected if expected else None


def alpha_by_definition(units: Sequence[Sequence[int | None]], level: str) -> Fraction | None:
    """By coincidences and Krippendorff's own differences, the ordinal one as the sum of counts between two values."""
    kept = [unit for row in units if len(unit := [value for value in row if value is not None]) > 1]
    coincidences: Counter[tuple[int, int]] = Counter()
    for unit in kept:
        for i, j in product(range(len(unit)), repeat=2):
            if i != j:
                coincidences[unit[i], unit[j]] += Fraction(1, len(unit) - 1)  # type: ignore[assignment]
    counts = Counter(value for unit in kept for value in unit)

    def difference(c: int, k: int) -> Fraction:
        low, high = min(c, k), max(c, k)
        between = sum(counts[g] for g in range(low, high + 1)) - Fraction(counts[c] + counts[k], 2)
        return {"nominal": Fraction(c != k), "ordinal": between**2, "interval": Fraction((c - k) ** 2)}[level]

    expected = sum(counts[c] * counts[k] * difference(c, k) for c, k in product(counts, counts))
    observed = sum(times * difference(c, k) for (c, k), times in coincidences.items())
    return 1 - (sum(counts.values()) - 1) * Fraction(observed) / expected if expected else None


def same(found: Figure, value: Fraction | float | None) -> bool:
    """Whether a figure is this value, or undefined with a reason where there is none."""
    if value is None or found.value is None:
        return found.value is None and value is None and found.reason is not None
    return found.reason is None and found.value == pytest.approx(float(value), rel=1e-12, abs=1e-12)


@repeatable
@given(PAIRS, st.sampled_from([None, "linear", "quadratic"]))
def test_kappa_is_its_definition(pairs: list[tuple[int, int]], weights: Any) -> None:
    """Of any grades and weights: 1 - observed / expected disagreement, in fractions; undefined only where that is."""
    expected = kappa_by_definition(pairs, weights)
    a, b = split(pairs)
    assert same(cohen_kappa(a, b, weights=weights), expected)
    assert same(cohen_kappa(a, b, weights=weights, categories=range(5)), expected)


@repeatable
@given(UNITS, st.sampled_from(["nominal", "ordinal", "interval"]))
def test_alpha_is_its_definition(units: list[list[int | None]], level: Any) -> None:
    """Of any number of raters and gaps: by coincidences in fractions, and undefined only where that is."""
    found = krippendorff_alpha(units, level=level)
    assert same(found, alpha_by_definition(units, level))
    assert found.n == sum(len([value for value in unit if value is not None]) > 1 for unit in units)
    assert found.n + found.left_out == len(units)


@repeatable
@given(PAIRS)
def test_rho_is_scipys(pairs: list[tuple[int, int]]) -> None:
    """Of any grades, with ties: scipy's, and undefined only where one side is constant."""
    a, b = split(pairs)
    constant = len(set(a)) == 1 or len(set(b)) == 1
    assert same(spearman(a, b), None if constant else spearmanr(a, b).statistic)


# by hand


def test_kappa_of_labels_by_hand() -> None:
    """Ten answers, 7 alike; by chance 0.6 * 0.5 + 0.4 * 0.5 = 0.5 would be: (0.7 - 0.5) / (1 - 0.5)."""
    a = ["yes"] * 6 + ["no"] * 4
    b = ["yes"] * 4 + ["no"] * 2 + ["yes"] + ["no"] * 3
    assert same(cohen_kappa(a, b), 0.4)
    assert same(cohen_kappa(a, b, categories=["yes", "no", "never"]), 0.4)


def test_weighted_kappa_by_hand() -> None:
    """Low, mid, high against low, high, high: 1 - 1/3 / (9/9) linear, 1 - 1/3 / (15/9) quadratic."""
    a, b = ["low", "mid", "high"], ["low", "high", "high"]
    order = ["low", "mid", "high"]
    assert same(cohen_kappa(a, b, weights="linear", categories=order), Fraction(2, 3))
    assert same(cohen_kappa(a, b, weights="quadratic", categories=order), Fraction(4, 5))


def test_a_grade_that_nobody_gave_keeps_its_place() -> None:
    """Grades 1, 2 and 9 are weighed by their differences, not by their places among the grades seen."""
    a, b = [1, 2, 9, 9], [2, 2, 9, 1]
    assert same(cohen_kappa(a, b, weights="linear"), kappa_by_definition(list(zip(a, b, strict=True)), "linear"))
    assert not same(
        cohen_kappa(a, b, weights="linear"), cohen_kappa(a, b, weights="linear", categories=[1, 2, 9]).value
    )


KRIPPENDORFF_2011 = {
    "binary": ("0100000010", "1110010000"),
    "nominal": ("aabbdcccedda", "babbbccceddd"),
    "gaps": ("123321412...", "1233224125.3", ".3332342251.", "12332441251."),
}


@pytest.mark.parametrize(
    ("name", "level", "alpha"),
    [
        ("binary", "nominal", 0.095),
        ("nominal", "nominal", 0.692),
        ("gaps", "nominal", 0.743),
        ("gaps", "ordinal", 0.815),
        ("gaps", "interval", 0.849),
    ],
)
def test_alpha_of_the_published_examples(name: str, level: Any, alpha: float) -> None:
    """The worked examples of Krippendorff 2011, of two and of four observers, give the alphas printed there."""
    raters = [[None if c == "." else c for c in row] for row in KRIPPENDORFF_2011[name]]
    units = list(zip(*raters, strict=True))
    if level != "nominal":
        units = [tuple(None if value is None else int(value) for value in unit) for unit in units]
    found = krippendorff_alpha(units, level=level)
    assert found.value == pytest.approx(alpha, abs=0.0005)
    assert found.left_out == sum(len(unit) - unit.count(None) < 2 for unit in units)


def test_differences_by_hand() -> None:
    """Mean absolute difference, bias (b - a) and share within, in the unit of the values."""
    a, b = [0.8, 0.5, 1.0, 0.2], [0.7, 0.5, 0.4, 0.4]
    assert same(mean_absolute_difference(a, b), 0.225)
    assert same(bias(a, b), -0.125)
    assert same(share_within(a, b, 0.0), 0.25)
    assert same(share_within(a, b, 0.1), 0.5)
    assert same(share_within(a, b, 0.2), 0.75)


def test_rho_by_hand() -> None:
    """Without ties 1 - 6 * (1 + 1) / (4 * 15); with ties their average rank."""
    assert same(spearman([1, 2, 3, 4], [10, 30, 20, 40]), 0.8)
    assert same(spearman([1, 1, 2], [1, 2, 3]), 0.75**0.5)


def test_confusion_has_rows_of_a_and_columns_of_b() -> None:
    """Labels come sorted, or as they are given, also those that nobody used; what is left out is counted."""
    a, b = ["no", "yes", "yes", None, "no"], ["no", "no", "yes", "yes", None]
    assert confusion(a, b) == Confusion(("no", "yes"), ((1, 0), (1, 1)), 2)
    assert confusion(a, b, ["yes", "?", "no"]) == Confusion(("yes", "?", "no"), ((1, 0, 1), (0, 0, 0), (0, 0, 1)), 2)
    assert confusion([1, "x"], ["x", 10]).labels == (1, 10, "x")
    assert confusion([], []) == Confusion((), (), 0)


# what is left out, and what is undefined


@repeatable
@given(GAPPED)
def test_pairs_with_a_gap_are_left_out_and_counted(pairs: list[tuple[int | None, int | None]]) -> None:
    """Every figure is that of the whole pairs alone; the counts say what was lost, on which side, and add up."""
    whole = [pair for pair in pairs if None not in pair]
    a, b = split(pairs)
    for function in (cohen_kappa, spearman, mean_absolute_difference, bias):
        found, alone = function(a, b), function(*split(whole))
        assert (found.value, found.n, found.reason) == (alone.value, len(whole), alone.reason)
        assert (found.left_out, alone.left_out) == (len(pairs) - len(whole), 0)
    agreement = numeric_agreement(a, b, tolerance=1, resamples=20)
    labels = label_agreement(a, b, resamples=20)
    lost = (
        sum(x is None and y is not None for x, y in pairs),
        sum(x is not None and y is None for x, y in pairs),
        sum(x is None and y is None for x, y in pairs),
    )
    for of in (agreement, labels):
        assert (of.n, of.without_a, of.without_b, of.without_both) == (len(whole), *lost)
        assert {(figure.n, figure.left_out) for figure in of.figures.values()} == {(len(whole), sum(lost))}
        assert all((figure.value is None) <= (figure.reason is not None) for figure in of.figures.values())


@pytest.mark.parametrize(
    ("a", "b"), [([], []), ([None, 1], [1, None]), ([None], [None])], ids=["nothing", "no pair", "no value"]
)
def test_without_a_pair_everything_is_undefined(a: list[Any], b: list[Any]) -> None:
    """No figure has a number, each says why, and the confusion has no label."""
    agreement, labels = numeric_agreement(a, b, tolerance=1), label_agreement(a, b)
    nothing = Figure(None, 0, len(a), NO_PAIR)
    assert agreement.figures == dict.fromkeys(NUMERIC, nothing)
    assert labels.figures == dict.fromkeys(["accuracy", "cohen_kappa", "alpha_nominal"], nothing)
    assert labels.confusion == Confusion((), (), len(a))
    for weights in ("linear", "quadratic"):
        assert cohen_kappa(a, b, weights=weights) == nothing
    assert spearman(a, b) == share_within(a, b, 1) == bias(a, b) == nothing
    assert krippendorff_alpha([[value] for value in a], level="ordinal") == Figure(None, 0, len(a), NO_UNIT)


def test_one_label_throughout_is_no_agreement_to_speak_of() -> None:
    """Kappa and alpha are undefined where there is one label only; the accuracy is 1, of a point."""
    found = label_agreement(["yes"] * 5, ["yes"] * 5).figures
    assert found["accuracy"] == Figure(1.0, 5, 0, None, 1.0, 1.0, "all-equal")
    assert found["cohen_kappa"] == found["alpha_nominal"] == Figure(None, 5, 0, ALL_ONE)


def test_one_number_throughout_ranks_nothing() -> None:
    """A constant side has no rho; kappa and alpha are undefined only where both sides are that constant."""
    both = numeric_agreement([3, 3, 3], [3, 3, 3], tolerance=0).figures
    assert [both[name].reason for name in NUMERIC[3:]] == [ALL_ONE, ALL_ONE, ONE_SIDE]
    one = numeric_agreement([3, 3, 3], [3, 4, 5], tolerance=0).figures
    assert [one[name].value is None for name in NUMERIC] == [False] * 5 + [True]
    assert one["quadratic_kappa"].value == 0


def test_one_pair_says_nothing_of_how_it_would_vary() -> None:
    """A single pair gives points, named so."""
    found = numeric_agreement([0.2], [0.7], tolerance=0.1).figures
    assert {figure.method for name, figure in found.items() if name != "spearman"} == {"one-pair"}
    assert (found["quadratic_kappa"].value, found["alpha_interval"].value) == (0, 0)
    assert found["spearman"] == Figure(None, 1, 0, ONE_SIDE)


def test_numbers_that_differ_by_rounding_are_one() -> None:
    """0.1 + 0.2 is 0.3: for ranks, for kappa, for what is undefined, and for what is within a tolerance."""
    thirds = [0.1 + 0.2, 0.3, 0.3]
    assert spearman(thirds, [1, 2, 3]).reason == ONE_SIDE
    assert krippendorff_alpha([thirds, thirds], level="interval").reason == ALL_ONE
    assert cohen_kappa([0.1 + 0.2, 0.5], [0.3, 0.5], weights="quadratic").value == 1
    assert share_within([0.8, 0.3], [0.7, 0.4], 0.1).value == 1


@pytest.mark.parametrize("size", [1e-200, 1e-9, 1e9, 1e200])
def test_the_size_of_the_unit_does_not_matter(size: float) -> None:
    """Kappa, alpha and rho are those of the numbers in any other unit, however large or small."""
    a, b = [1, 2, 4, 4, 7], [1, 3, 4, 6, 6]
    x, y = [size * value for value in a], [size * value for value in b]
    for weights in (None, "linear", "quadratic"):
        assert same(cohen_kappa(x, y, weights=weights), cohen_kappa(a, b, weights=weights).value)
    units, sized = list(zip(a, b, strict=True)), list(zip(x, y, strict=True))
    assert same(krippendorff_alpha(sized, level="interval"), krippendorff_alpha(units, level="interval").value)
    assert same(spearman(x, y), spearman(a, b).value)


def test_kappa_is_over_the_values_as_given() -> None:
    """Grades that lie between the steps of a scale are not rounded to them, which would give another kappa."""
    a, b = [0.35, 0.12, 0.9, 0.55], [0.4, 0.1, 0.94, 0.44]
    plain = numeric_agreement(a, b, tolerance=0).figures["quadratic_kappa"]
    hundredths = [(35, 40), (12, 10), (90, 94), (55, 44)]
    assert same(Figure(plain.value, 4, 0), kappa_by_definition(hundredths, "quadratic"))
    assert plain.value == cohen_kappa(a, b, weights="quadratic").value


@repeatable
@given(PAIRS, st.sampled_from([0.1, 0.25, 0.3, 1 / 3, 1e-3, 7]))
def test_kappa_does_not_depend_on_the_unit(pairs: list[tuple[int, int]], unit: float) -> None:
    """The same grades in tenths, quarters or points have one kappa."""
    sides = split(pairs)
    scaled = ([unit * value for value in side] for side in sides)
    plain = numeric_agreement(*sides, tolerance=1, resamples=1).figures["quadratic_kappa"]
    found = numeric_agreement(*scaled, tolerance=1, resamples=1).figures["quadratic_kappa"]
    assert found.value == (None if plain.value is None else pytest.approx(plain.value))


# properties


@repeatable
@given(PAIRS, st.randoms(use_true_random=False))
def test_sides_order_and_names_change_nothing(pairs: list[tuple[int, int]], random: Any) -> None:
    """The sides may change places (bias its sign), the pairs their order, labels their names, ranks their numbers."""
    a, b = split(pairs)
    shuffled = random.sample(pairs, len(pairs))
    for weights in (None, "linear", "quadratic"):
        kappa = cohen_kappa(a, b, weights=weights)
        assert kappa == cohen_kappa(*split(shuffled), weights=weights)
        assert same(cohen_kappa(b, a, weights=weights), kappa.value)
        assert same(cohen_kappa([3 * v - 7 for v in a], [3 * v - 7 for v in b], weights=weights), kappa.value)
    named = [NAMES[v] for v in a], [NAMES[v] for v in b]
    assert same(cohen_kappa(*named), cohen_kappa(a, b).value)
    assert same(krippendorff_alpha(list(zip(*named, strict=True))), krippendorff_alpha(pairs).value)
    assert same(bias(b, a), -(bias(a, b).value or 0))
    assert spearman(a, b) == spearman([v**3 for v in a], [2**v for v in b])
    curved = [(v**3, w**3) for v, w in pairs]
    assert same(krippendorff_alpha(curved, level="ordinal"), krippendorff_alpha(pairs, level="ordinal").value)


@repeatable
@given(PAIRS)
def test_figures_stay_in_their_range_and_agree_with_the_single_functions(pairs: list[tuple[int, int]]) -> None:
    """At most 1, and 1 exactly where all pairs are equal; each figure of an agreement is what its function gives."""
    a, b = split(pairs)
    numbers = numeric_agreement(a, b, tolerance=1, resamples=50).figures
    labels = label_agreement(a, b, resamples=50).figures
    functions = {
        "mean_absolute_difference": mean_absolute_difference(a, b),
        "share_within": share_within(a, b, 1),
        "bias": bias(a, b),
        "quadratic_kappa": cohen_kappa(a, b, weights="quadratic"),
        "alpha_interval": krippendorff_alpha(pairs, level="interval"),
        "spearman": spearman(a, b),
        "accuracy": Figure(sum(x == y for x, y in pairs) / len(pairs), len(pairs), 0),
        "cohen_kappa": cohen_kappa(a, b),
        "alpha_nominal": krippendorff_alpha(pairs),
    }
    for name, figure in {**numbers, **labels}.items():
        assert same(Figure(figure.value, 0, 0, figure.reason if figure.value is None else None), functions[name].value)
        if figure.low is not None and figure.high is not None:
            assert figure.low <= figure.high
            assert figure.method is not None
        if name in {"quadratic_kappa", "cohen_kappa", "alpha_interval", "alpha_nominal"} and figure.value is not None:
            assert figure.value <= 1
            assert (figure.value == 1) == (a == b)


# intervals


def graded(n: int, seed: int = 1) -> tuple[list[int], list[int]]:
    """Whole points from 0 to 10 of two evaluators who often differ a little."""
    draw = np.random.default_rng(seed)
    a = draw.integers(0, 11, n)
    return a.tolist(), (a + draw.integers(-2, 4, n)).clip(0, 10).tolist()


def test_intervals_are_those_of_pairs_drawn_one_by_one() -> None:
    """Drawing indices and computing each figure anew gives the same ends, within the Monte Carlo error of both."""
    a, b = graded(80)
    numbers = numeric_agreement(a, b, tolerance=1, resamples=4000)
    labels = label_agreement(a, b, resamples=4000)
    draw = np.random.default_rng(7)
    again: dict[str, list[float]] = {
        name: [] for name in ("quadratic_kappa", "alpha_interval", "spearman", "kappa", "alpha")
    }
    for chosen in draw.integers(0, 80, (400, 80)):
        x, y = [a[i] for i in chosen], [b[i] for i in chosen]
        pairs = list(zip(x, y, strict=True))
        again["quadratic_kappa"].append(cohen_kappa(x, y, weights="quadratic").value or 0)
        again["alpha_interval"].append(krippendorff_alpha(pairs, level="interval").value or 0)
        again["spearman"].append(spearman(x, y).value or 0)
        again["kappa"].append(cohen_kappa(x, y).value or 0)
        again["alpha"].append(krippendorff_alpha(pairs).value or 0)
    found = {**numbers.figures, "kappa": labels.figures["cohen_kappa"], "alpha": labels.figures["alpha_nominal"]}
    for name, values in again.items():
        assert found[name].method == "percentile"
        ends = np.quantile(values, [0.025, 0.975])
        assert (found[name].low, found[name].high) == pytest.approx(ends, abs=0.5 * float(np.std(values)))


def test_means_have_the_interval_of_paired_scores() -> None:
    """Differences, shares and accuracy have the BCa interval of paired scores, of the same seed."""
    a, b = graded(200)
    found = numeric_agreement(a, b, tolerance=1, resamples=500, seed=3).figures["bias"]
    interval = paired_interval(a, b, resamples=500, seed=3)
    assert interval is not None
    assert (found.low, found.high, found.method) == (interval.low, interval.high, interval.method)
    assert (found.low or 0) < (found.value or 0) < (found.high or 0)


def test_the_same_seed_gives_the_same_bits_in_any_order() -> None:
    """Intervals depend on the pairs and the seed, not on the order of the pairs."""
    a, b = graded(60)
    first = numeric_agreement(a, b, tolerance=1, resamples=300, seed=5)
    assert numeric_agreement(a[::-1], b[::-1], tolerance=1, resamples=300, seed=5) == first
    assert numeric_agreement(a, b, tolerance=1, resamples=300, seed=6) != first
    assert label_agreement(a[::-1], b[::-1], resamples=300) == label_agreement(a, b, resamples=300)


def test_too_many_resamples_without_a_value_give_no_interval() -> None:
    """Of 30 pairs that differ once, a third of the resamples hold one label only: a value, and why no interval."""
    found = label_agreement(["yes"] * 30, ["yes"] * 29 + ["no"]).figures
    assert found["cohen_kappa"].value == 0
    assert (found["cohen_kappa"].low, found["cohen_kappa"].high, found["cohen_kappa"].method) == (None, None, None)
    assert (found["cohen_kappa"].reason or "").startswith("no interval: 3")
    assert found["accuracy"].method == "bca"


def test_full_agreement_is_a_point() -> None:
    """Where no resample could differ the ends are the value, and the method says that this is no evidence."""
    found = label_agreement(["yes", "no"] * 20, ["yes", "no"] * 20).figures
    assert {(f.value, f.low, f.high, f.method) for f in found.values()} == {(1.0, 1.0, 1.0, "all-equal")}


def test_distinct_numbers_take_about_a_second() -> None:
    """1,500 pairs of distinct numbers, the worst case, with 2,000 resamples: within 3 s of CPU, usually 1."""
    draw = np.random.default_rng(0)
    a = draw.random(1500)
    b = (a + draw.normal(0, 0.2, 1500)).clip(0, 1)
    started = time.process_time()
    found = numeric_agreement(a.tolist(), b.tolist(), tolerance=0.1)
    assert time.process_time() - started < 3
    assert all(figure.low is not None for figure in found.figures.values())


# what is refused


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: cohen_kappa([1], [1, 2]), "a has 1 values and b 2"),
        (lambda: cohen_kappa(["x"], ["y"], weights="linear"), "'x' is no finite number"),
        (lambda: cohen_kappa(["x"], ["y"], categories=["x"]), "'y' is not among the labels"),
        (lambda: cohen_kappa(["x"], ["x"], categories=["x", "x"]), "repeat one"),
        (lambda: cohen_kappa([1], [1], weights="cubic"), "weights is 'cubic'"),  # type: ignore[arg-type]
        (lambda: cohen_kappa([1.0], [float("nan")]), "a label is NaN"),
        (lambda: krippendorff_alpha([[1, 2]], level="ratio"), "level is 'ratio'"),  # type: ignore[arg-type]
        (lambda: krippendorff_alpha([["a", "b"]], level="ordinal"), "'a' is no finite number"),
        (lambda: spearman([1.0], [float("inf")]), "inf is no finite number"),
        (lambda: bias([float("nan")], [1.0]), "nan is no finite number"),
        (lambda: share_within([1], [1], -0.1), "tolerance is -0.1"),
        (lambda: share_within([1], [1], float("nan")), "tolerance is nan"),
        (lambda: confusion(["x"], ["y"], ["x"]), "'y' is not among the labels"),
        (lambda: numeric_agreement([1], [1], tolerance=0, resamples=0), "resamples is 0"),
        (lambda: label_agreement([], [], resamples=0), "resamples is 0"),
    ],
)
def test_what_cannot_be_meant_is_refused(call: Any, says: str) -> None:
    """Lengths, values and options that make no sense are named."""
    with pytest.raises(ValueError, match=says):
        call()


# published verdicts


@pytest.fixture(scope="module")
def verdicts() -> Path:
    """The folder of published verdicts of judges and humans."""
    folder = os.environ.get("EVALTRACK_TEST_DATA")
    if not folder:
        pytest.skip("EVALTRACK_TEST_DATA does not name the folder of real data")
    return Path(folder) / "judges_vs_humans"


def lines(path: Path) -> list[list[str]]:
    """The rows of a tab-separated file below its header."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file, delimiter="\t"))[1:]


def of_the_same_answers(
    ours: Sequence[tuple[Hashable, str]], theirs: Sequence[tuple[Hashable, str]]
) -> tuple[list[str], list[str | None]]:
    """What each evaluator gave the answers of `ours`; None where `theirs` knows no such answer.

    One question has the same answer twice, so the rows are paired in their order, and must be of the same answer.
    """
    pairs = zip(ours, theirs, strict=True)
    return [verdict for _, verdict in ours], [given if key == other else None for (key, _), (other, given) in pairs]


def humans(folder: Path) -> list[tuple[Hashable, str]]:
    """id, question and answer, and the verdict that the human annotators settled on."""
    return [(tuple(row[:3]), row[3]) for row in lines(folder / "openqa_nq301" / "NQ301_human.tsv")]


def test_two_humans_on_open_questions(verdicts: Path) -> None:
    """NQ301: annotators 1 and 2 have kappa .7347 over 1483 answers; the 7 that annotator 2 left empty are left out."""
    rows = lines(verdicts / "openqa_nq301" / "NQ301_human.tsv")
    found = label_agreement([row[4] or None for row in rows], [row[5] or None for row in rows])
    kappa = found.figures["cohen_kappa"]
    assert (found.n, found.without_a, found.without_b, found.without_both) == (1483, 0, 7, 0)
    assert kappa.value == pytest.approx(0.7347, abs=0.00005)
    assert (kappa.low or 0) < 0.7347 < (kappa.high or 0)
    assert [mode(v for v in row[4:] if v) for row in rows] == [row[3] for row in rows]


def of_gpt4(verdicts: Path, empty: str | None) -> Agreement:
    """GPT-4 against the humans, where an empty verdict is read as `empty`."""
    rows = lines(verdicts / "openqa_nq301" / "NQ301_gpt-4.tsv")
    ours, theirs = of_the_same_answers(humans(verdicts), [(tuple(row[:3]), row[3]) for row in rows])
    return label_agreement(ours, [empty if verdict == "" else verdict for verdict in theirs])


def test_gpt4_against_humans_on_open_questions(verdicts: Path) -> None:
    """NQ301: kappa .6932 and accuracy .8469, as published, over 1489 answers.

    `Acceptable?` of the GPT-4 file is GPT-4's own verdict, that of the human file the humans'. The figures come out
    where (1) row 150 is left out, as the two files hold different answers there, and (2) each of the two empty verdicts
    is a label of its own and so a disagreement.
    """
    found = of_gpt4(verdicts, "")
    kappa, accuracy = found.figures["cohen_kappa"], found.figures["accuracy"]
    assert (found.n, found.without_a, found.without_b) == (1489, 0, 1)
    assert (kappa.value, accuracy.value) == pytest.approx((0.6932, 0.8469), abs=0.00005)
    assert found.confusion is not None
    assert found.confusion.labels == ("", "No", "Yes")
    assert [row[0] for row in found.confusion.counts] == [0, 2, 0]
    assert (kappa.low, kappa.high) == pytest.approx((0.656, 0.730), abs=0.005)


def test_an_empty_verdict_moves_the_figures(verdicts: Path) -> None:
    """NQ301: without the two empty verdicts, as None is read, .6951 and .8480 over 1487; as No, .6955 and .8482."""
    left_out, negative = of_gpt4(verdicts, None), of_gpt4(verdicts, "No")
    assert (left_out.n, left_out.without_b) == (1487, 3)
    for found, kappa, accuracy in ((left_out, 0.6951, 0.8480), (negative, 0.6955, 0.8482)):
        assert found.figures["cohen_kappa"].value == pytest.approx(kappa, abs=0.00005)
        assert found.figures["accuracy"].value == pytest.approx(accuracy, abs=0.00005)


def test_a_file_that_lost_a_tab_is_read_from_its_other_end(verdicts: Path) -> None:
    """NQ301: in InstructGPT's file question and answer run together in every row; joined so, all 1490 pair."""
    rows = lines(verdicts / "openqa_nq301" / "NQ301_text-davinci-003.tsv")
    assert {len(row) for row in rows} == {4}
    joined = [((key[0], key[1] + key[2]), verdict) for key, verdict in humans(verdicts)]  # type: ignore[index]
    found = label_agreement(*of_the_same_answers(joined, [((row[0], row[1]), row[2]) for row in rows]))
    assert found.confusion is not None
    assert (found.n, found.confusion.labels) == (1490, ("No", "Yes"))
    assert found.figures["cohen_kappa"].value == pytest.approx(0.6745, abs=0.00005)


def pairwise(verdicts: Path) -> tuple[list[list[int]], list[str]]:
    """PandaLM: what three annotators and GPT-3.5 chose; 1 or 2 is the better response, 0 a tie."""
    golden = json.loads((verdicts / "pandalm" / "testset-v1.json").read_text(encoding="utf-8"))
    judged = json.loads((verdicts / "pandalm" / "gpt-3.5-turbo-testset-v1.json").read_text(encoding="utf-8"))
    assert [row["idx"] for row in golden] == [row["idx"] for row in judged]
    return [[row[f"annotator{i}"] for i in (1, 2, 3)] for row in golden], [row["gpt_result"] for row in judged]


def test_three_annotators_of_pairs(verdicts: Path) -> None:
    """PandaLM: alpha .8642 of 999 pairs and three annotators is the nominal one; a tie (0) is no middle of 1 and 2."""
    annotators, _ = pairwise(verdicts)
    found = krippendorff_alpha(annotators)
    assert (found.n, found.left_out) == (999, 0)
    assert found.value == pytest.approx(0.8642, abs=0.00005)
    assert krippendorff_alpha(annotators, level="interval").value == pytest.approx(0.8596, abs=0.00005)


def test_gpt35_against_the_majority_of_annotators(verdicts: Path) -> None:
    """PandaLM: accuracy .6977 and kappa .4755, as published, over all 999 pairs.

    `Tie` is the annotators' 0, and `garbage` (25 answers that could not be read) a label of its own, so a disagreement.
    Left out they would give .7156 and .4929 over 974. Every pair has a majority.
    """
    annotators, judged = pairwise(verdicts)
    majority = [mode(chosen) for chosen in annotators]
    assert all(chosen.count(most) > 1 for chosen, most in zip(annotators, majority, strict=True))
    names: dict[str, Any] = {"1": 1, "2": 2, "Tie": 0, "garbage": "garbage"}
    found = label_agreement(majority, [names[given] for given in judged], [0, 1, 2, "garbage"])
    assert found.n == 999
    assert found.figures["accuracy"].value == pytest.approx(0.6977, abs=0.00005)
    assert found.figures["cohen_kappa"].value == pytest.approx(0.4755, abs=0.00005)
    names["garbage"] = None
    readable = label_agreement(majority, [names[given] for given in judged])
    assert (readable.n, readable.without_b) == (974, 25)
    assert readable.figures["accuracy"].value == pytest.approx(0.7156, abs=0.00005)
    assert readable.figures["cohen_kappa"].value == pytest.approx(0.4929, abs=0.00005)
