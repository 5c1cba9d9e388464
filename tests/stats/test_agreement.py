"""Agreement of two evaluators: by hand, by the definitions in fractions, and on published verdicts."""

from __future__ import annotations

import csv
import os
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaltrack.stats.agreement import (
    ALL_ONE,
    NO_PAIR,
    Figure,
    label_agreement,
    numeric_agreement,
)

repeatable = settings(deadline=None, derandomize=True, max_examples=50)

NUMERIC = ["mean_absolute_difference", "share_within", "bias", "quadratic_kappa"]
LABELS = ["accuracy", "cohen_kappa"]

GRADES = st.integers(0, 4)
PAIRS = st.lists(st.tuples(GRADES, GRADES), min_size=1, max_size=30)


def split(pairs: Sequence[tuple[Any, Any]]) -> tuple[list[Any], list[Any]]:
    return [a for a, _ in pairs], [b for _, b in pairs]


def figures(a: Sequence[Any], b: Sequence[Any], tolerance: float = 1) -> dict[str, Figure]:
    numbers = numeric_agreement(a, b, tolerance=tolerance, resamples=20)
    return {**numbers.figures, **label_agreement(a, b, resamples=20).figures}


def kappa_by_definition(pairs: Sequence[tuple[int, int]], weight: Callable[[int, int], int]) -> Fraction | None:
    """1 - the mean weight of the pairs / that of every `a` with every `b`."""
    n = len(pairs)
    expected = Fraction(sum(weight(a, b) for (a, _), (_, b) in product(pairs, pairs)), n * n)
    return 1 - Fraction(sum(weight(a, b) for a, b in pairs), n) / expected if expected else None


def same(found: Figure, value: Fraction | float | None) -> bool:
    if value is None or found.value is None:
        return found.value is None and value is None and found.reason is not None
    return found.value == pytest.approx(float(value), rel=1e-12, abs=1e-12)


@repeatable
@given(PAIRS)
def test_figures_are_their_definitions(pairs: list[tuple[int, int]]) -> None:
    """Of any grades, in fractions; undefined only where that is."""

    def differ(a: int, b: int) -> int:
        return int(a != b)

    def squared(a: int, b: int) -> int:
        return (a - b) ** 2

    a, b = split(pairs)
    found = figures(a, b)
    assert same(found["cohen_kappa"], kappa_by_definition(pairs, differ))
    assert same(found["quadratic_kappa"], kappa_by_definition(pairs, squared))
    assert same(found["accuracy"], Fraction(sum(x == y for x, y in pairs), len(pairs)))
    for name in ("quadratic_kappa", "cohen_kappa"):
        if (value := found[name].value) is not None:
            assert value <= 1
            assert (value == 1) == (a == b)


def test_differences_by_hand() -> None:
    a, b = [0.8, 0.5, 1.0, 0.2], [0.7, 0.5, 0.4, 0.4]
    assert same(figures(a, b)["mean_absolute_difference"], 0.225)
    assert same(figures(a, b)["bias"], -0.125)
    for tolerance, share in ((0.0, 0.25), (0.1, 0.5), (0.2, 0.75)):
        assert same(figures(a, b, tolerance)["share_within"], share)


def test_pairs_that_lack_a_value_are_counted() -> None:
    agreement = label_agreement(["no", "yes", "yes", None, "no"], ["no", "no", "yes", "yes", None])
    assert (agreement.n, agreement.without_a, agreement.without_b) == (3, 1, 1)
    assert {(figure.n, figure.left_out) for figure in agreement.figures.values()} == {(3, 2)}
    assert label_agreement([1, "x"], ["x", 10]).n == 2


@pytest.mark.parametrize(
    ("a", "b"), [([], []), ([None, 1], [1, None]), ([None], [None])], ids=["nothing", "no pair", "no value"]
)
def test_without_a_pair_everything_is_undefined(a: list[Any], b: list[Any]) -> None:
    agreement, labels = numeric_agreement(a, b, tolerance=1), label_agreement(a, b)
    nothing = Figure(None, 0, len(a), NO_PAIR)
    assert agreement.figures == dict.fromkeys(NUMERIC, nothing)
    assert labels.figures == dict.fromkeys(LABELS, nothing)


@pytest.mark.parametrize(
    ("a", "b", "undefined"),
    [
        ([3, 3, 3], [3, 3, 3], dict.fromkeys((NUMERIC[3], LABELS[1]), ALL_ONE)),
        ([3, 3, 3], [3, 4, 5], {}),
        ([0.2], [0.7], {}),
        ([1, 2] * 20, [1, 2] * 20, {}),
    ],
)
def test_a_figure_without_a_value_says_why(a: list[float], b: list[float], undefined: dict[str, str]) -> None:
    """Of one value throughout there is no agreement to speak of; agreement in all is a point."""
    found = figures(a, b, 0)
    assert {name: figure.reason for name, figure in found.items() if figure.value is None} == undefined
    if len(a) == 1:
        assert found["quadratic_kappa"].value == 0


def test_numbers_that_differ_by_rounding_are_one() -> None:
    """0.1 + 0.2 is 0.3: for kappa, for what is undefined, and for what is within a tolerance."""
    thirds = [0.1 + 0.2, 0.3, 0.3]
    assert figures(thirds, thirds)["quadratic_kappa"].reason == ALL_ONE
    assert figures([0.1 + 0.2, 0.5], [0.3, 0.5])["quadratic_kappa"].value == 1
    assert figures([0.8, 0.3], [0.7, 0.4], 0.1)["share_within"].value == 1


@repeatable
@given(PAIRS, st.sampled_from([0.1, 0.25, 0.3, 1 / 3, 1e-3, 7]), st.randoms(use_true_random=False))
def test_neither_unit_nor_side_nor_order_matters(pairs: list[tuple[int, int]], unit: float, random: Any) -> None:
    """The same grades in tenths, quarters or points, given by the other side or in another order, have one kappa."""
    plain = figures(*split(pairs))
    scaled = figures(*([unit * value for value in side] for side in split(pairs)))
    turned = figures(*reversed(split(pairs)))
    shuffled = random.sample(pairs, len(pairs))
    assert figures(*split(shuffled)) == plain
    for name in ("quadratic_kappa", "cohen_kappa"):
        for other in (scaled, turned):
            assert other[name].value == (None if plain[name].value is None else pytest.approx(plain[name].value))
    assert same(turned["bias"], -(plain["bias"].value or 0))


# intervals


def graded(n: int, seed: int = 1) -> tuple[list[int], list[int]]:
    draw = np.random.default_rng(seed)
    a = draw.integers(0, 11, n)
    return a.tolist(), (a + draw.integers(-2, 4, n)).clip(0, 10).tolist()


def test_intervals_are_those_of_pairs_drawn_one_by_one() -> None:
    """Drawing indices and computing each figure anew gives the same ends, within the Monte Carlo error of both."""
    a, b = graded(80)
    numbers = numeric_agreement(a, b, tolerance=1, resamples=4000)
    labels = label_agreement(a, b, resamples=4000)
    draw, again = np.random.default_rng(7), dict[str, list[float]]()
    for chosen in draw.integers(0, 80, (400, 80)):
        for name, figure in figures([a[i] for i in chosen], [b[i] for i in chosen]).items():
            again.setdefault(name, []).append(figure.value or 0)
    found = {**numbers.figures, **labels.figures}
    for name in ("quadratic_kappa", "cohen_kappa"):
        ends = np.quantile(again[name], [0.025, 0.975])
        assert (found[name].low, found[name].high) == pytest.approx(ends, abs=0.5 * float(np.std(again[name])))


def test_the_same_pairs_in_any_order_give_the_same_bits() -> None:
    a, b = graded(60)
    first = numeric_agreement(a, b, tolerance=1, resamples=300)
    assert numeric_agreement(a[::-1], b[::-1], tolerance=1, resamples=300) == first
    assert label_agreement(a[::-1], b[::-1], resamples=300) == label_agreement(a, b, resamples=300)


def test_too_many_resamples_without_a_value_give_no_interval() -> None:
    """Of 30 pairs that differ once, a third of the resamples hold one label only: a value, and why no interval."""
    found = label_agreement(["yes"] * 30, ["yes"] * 29 + ["no"]).figures
    assert found["cohen_kappa"].value == 0
    assert (found["cohen_kappa"].low, found["cohen_kappa"].high) == (None, None)
    assert (found["cohen_kappa"].reason or "").startswith("no interval: 3")


def test_gpt4_against_humans_on_open_questions() -> None:
    """NQ301: kappa .6932 and accuracy .8469, as published.

    Row 150 is left out, as the two files hold different answers there; each of GPT-4's two empty verdicts is a label of
    its own and so a disagreement.
    """
    folder = os.environ.get("EVALTRACK_TEST_DATA")
    if not folder:
        pytest.skip("EVALTRACK_TEST_DATA does not name the folder of real data")
    files = [Path(folder) / "judges_vs_humans/openqa_nq301" / f"NQ301_{who}.tsv" for who in ("human", "gpt-4")]
    humans, gpt4 = (list(csv.reader(path.read_text("utf-8").splitlines(), delimiter="\t"))[1:] for path in files)
    theirs = [given[3] if asked[:3] == given[:3] else None for asked, given in zip(humans, gpt4, strict=True)]
    found = label_agreement([row[3] for row in humans], theirs)
    kappa, accuracy = found.figures["cohen_kappa"], found.figures["accuracy"]
    assert (found.n, found.without_a, found.without_b) == (1489, 0, 1)
    assert (kappa.value, accuracy.value) == pytest.approx((0.6932, 0.8469), abs=0.00005)
    assert (kappa.low, kappa.high) == pytest.approx((0.656, 0.730), abs=0.005)
