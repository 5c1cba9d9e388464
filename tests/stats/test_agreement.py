"""Agreement of two evaluators: by hand, by the definitions in fractions, against scipy, and on published verdicts."""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Hashable, Sequence
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
    ONE_SIDE,
    Agreement,
    Confusion,
    Figure,
    label_agreement,
    numeric_agreement,
)
from evaltrack.stats.intervals import paired_interval

repeatable = settings(deadline=None, derandomize=True, max_examples=50)

NUMERIC = ["mean_absolute_difference", "share_within", "bias", "quadratic_kappa", "alpha_interval", "spearman"]
LABELS = ["accuracy", "cohen_kappa", "alpha_nominal"]

GRADES = st.integers(0, 4)
PAIRS = st.lists(st.tuples(GRADES, GRADES), min_size=1, max_size=30)
GAPPED = st.lists(st.tuples(st.none() | GRADES, st.none() | GRADES), max_size=30)


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


def alpha_by_definition(pairs: Sequence[tuple[int, int]], weight: Callable[[int, int], int]) -> Fraction | None:
    """1 - the mean weight of the pairs / that of every two of all values."""
    values = [value for pair in pairs for value in pair]
    expected = Fraction(sum(weight(c, k) for c, k in product(values, values)), len(values) * (len(values) - 1))
    return 1 - Fraction(sum(weight(a, b) for a, b in pairs), len(pairs)) / expected if expected else None


def same(found: Figure, value: Fraction | float | None) -> bool:
    if value is None or found.value is None:
        return found.value is None and value is None and found.reason is not None
    return found.value == pytest.approx(float(value), rel=1e-12, abs=1e-12)


@repeatable
@given(PAIRS)
def test_figures_are_their_definitions(pairs: list[tuple[int, int]]) -> None:
    """Of any grades, in fractions, and rho as scipy gives it; undefined only where that is."""

    def differ(a: int, b: int) -> int:
        return int(a != b)

    def squared(a: int, b: int) -> int:
        return (a - b) ** 2

    a, b = split(pairs)
    found, constant = figures(a, b), len(set(a)) == 1 or len(set(b)) == 1
    assert same(found["cohen_kappa"], kappa_by_definition(pairs, differ))
    assert same(found["quadratic_kappa"], kappa_by_definition(pairs, squared))
    assert same(found["alpha_nominal"], alpha_by_definition(pairs, differ))
    assert same(found["alpha_interval"], alpha_by_definition(pairs, squared))
    assert same(found["spearman"], None if constant else spearmanr(a, b).statistic)
    assert same(found["accuracy"], Fraction(sum(x == y for x, y in pairs), len(pairs)))
    for name in ("quadratic_kappa", "cohen_kappa", "alpha_interval", "alpha_nominal"):
        if (value := found[name].value) is not None:
            assert value <= 1
            assert (value == 1) == (a == b)


@pytest.mark.parametrize(
    ("one", "other", "alpha"), [("0100000010", "1110010000", 0.095), ("aabbdcccedda", "babbbccceddd", 0.692)]
)
def test_alpha_of_the_published_examples(one: str, other: str, alpha: float) -> None:
    assert label_agreement(one, other).figures["alpha_nominal"].value == pytest.approx(alpha, abs=0.0005)


def test_differences_by_hand() -> None:
    a, b = [0.8, 0.5, 1.0, 0.2], [0.7, 0.5, 0.4, 0.4]
    assert same(figures(a, b)["mean_absolute_difference"], 0.225)
    assert same(figures(a, b)["bias"], -0.125)
    for tolerance, share in ((0.0, 0.25), (0.1, 0.5), (0.2, 0.75)):
        assert same(figures(a, b, tolerance)["share_within"], share)


def test_confusion_has_rows_of_a_and_columns_of_b() -> None:
    a, b = ["no", "yes", "yes", None, "no"], ["no", "no", "yes", "yes", None]
    assert label_agreement(a, b).confusion == Confusion(("no", "yes"), ((1, 0), (1, 1)))
    mixed = label_agreement([1, "x"], ["x", 10]).confusion
    assert mixed is not None
    assert mixed.labels == (1, 10, "x")


@repeatable
@given(GAPPED)
def test_pairs_with_a_gap_are_left_out_and_counted(pairs: list[tuple[int | None, int | None]]) -> None:
    whole = [pair for pair in pairs if None not in pair]
    found, alone = figures(*split(pairs)), figures(*split(whole))
    for name, figure in found.items():
        assert (figure.value, figure.n, figure.reason) == (alone[name].value, len(whole), alone[name].reason)
        assert (figure.left_out, alone[name].left_out) == (len(pairs) - len(whole), 0)
        assert (figure.value is None) <= (figure.reason is not None)
    lost = (
        sum(x is None and y is not None for x, y in pairs),
        sum(x is not None and y is None for x, y in pairs),
    )
    for of in (numeric_agreement(*split(pairs), tolerance=1, resamples=20), label_agreement(*split(pairs))):
        assert (of.n, of.without_a, of.without_b) == (len(whole), *lost)


@pytest.mark.parametrize(
    ("a", "b"), [([], []), ([None, 1], [1, None]), ([None], [None])], ids=["nothing", "no pair", "no value"]
)
def test_without_a_pair_everything_is_undefined(a: list[Any], b: list[Any]) -> None:
    agreement, labels = numeric_agreement(a, b, tolerance=1), label_agreement(a, b)
    nothing = Figure(None, 0, len(a), NO_PAIR)
    assert agreement.figures == dict.fromkeys(NUMERIC, nothing)
    assert labels.figures == dict.fromkeys(LABELS, nothing)
    assert labels.confusion == Confusion((), ())


def test_one_label_throughout_is_no_agreement_to_speak_of() -> None:
    found = label_agreement(["yes"] * 5, ["yes"] * 5).figures
    assert found["accuracy"] == Figure(1.0, 5, 0, None, 1.0, 1.0, "all-equal")
    assert found["cohen_kappa"] == found["alpha_nominal"] == Figure(None, 5, 0, ALL_ONE)


def test_one_number_throughout_ranks_nothing() -> None:
    both = numeric_agreement([3, 3, 3], [3, 3, 3], tolerance=0).figures
    assert [both[name].reason for name in NUMERIC[3:]] == [ALL_ONE, ALL_ONE, ONE_SIDE]
    one = numeric_agreement([3, 3, 3], [3, 4, 5], tolerance=0).figures
    assert [one[name].value is None for name in NUMERIC] == [False] * 5 + [True]
    assert one["quadratic_kappa"].value == 0


def test_one_pair_says_nothing_of_how_it_would_vary() -> None:
    found = numeric_agreement([0.2], [0.7], tolerance=0.1).figures
    assert {figure.method for name, figure in found.items() if name != "spearman"} == {"one-pair"}
    assert (found["quadratic_kappa"].value, found["alpha_interval"].value) == (0, 0)
    assert found["spearman"] == Figure(None, 1, 0, ONE_SIDE)


def test_numbers_that_differ_by_rounding_are_one() -> None:
    """0.1 + 0.2 is 0.3: for ranks, for kappa, for what is undefined, and for what is within a tolerance."""
    thirds = [0.1 + 0.2, 0.3, 0.3]
    assert figures(thirds, [1, 2, 3])["spearman"].reason == ONE_SIDE
    assert figures(thirds, thirds)["alpha_interval"].reason == ALL_ONE
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
    for name in ("quadratic_kappa", "alpha_interval", "spearman", "cohen_kappa", "alpha_nominal"):
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
    for name in ("quadratic_kappa", "alpha_interval", "spearman", "cohen_kappa", "alpha_nominal"):
        assert found[name].method == "percentile"
        ends = np.quantile(again[name], [0.025, 0.975])
        assert (found[name].low, found[name].high) == pytest.approx(ends, abs=0.5 * float(np.std(again[name])))


def test_means_have_the_interval_of_paired_scores() -> None:
    a, b = graded(200)
    found = numeric_agreement(a, b, tolerance=1, resamples=500, seed=3).figures["bias"]
    interval = paired_interval(a, b, resamples=500, seed=3)
    assert interval is not None
    assert (found.low, found.high, found.method) == (interval.low, interval.high, interval.method)
    assert (found.low or 0) < (found.value or 0) < (found.high or 0)


def test_the_same_seed_gives_the_same_bits_in_any_order() -> None:
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
    found = label_agreement(["yes", "no"] * 20, ["yes", "no"] * 20).figures
    assert {(f.value, f.low, f.high, f.method) for f in found.values()} == {(1.0, 1.0, 1.0, "all-equal")}


# published verdicts


@pytest.fixture(scope="module")
def verdicts() -> Path:
    folder = os.environ.get("EVALTRACK_TEST_DATA")
    if not folder:
        pytest.skip("EVALTRACK_TEST_DATA does not name the folder of real data")
    return Path(folder) / "judges_vs_humans"


def lines(path: Path) -> list[list[str]]:
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


def pairwise(verdicts: Path) -> tuple[list[list[int]], list[str]]:
    """PandaLM: what three annotators and GPT-3.5 chose; 1 or 2 is the better response, 0 a tie."""
    golden = json.loads((verdicts / "pandalm" / "testset-v1.json").read_text(encoding="utf-8"))
    judged = json.loads((verdicts / "pandalm" / "gpt-3.5-turbo-testset-v1.json").read_text(encoding="utf-8"))
    assert [row["idx"] for row in golden] == [row["idx"] for row in judged]
    return [[row[f"annotator{i}"] for i in (1, 2, 3)] for row in golden], [row["gpt_result"] for row in judged]


def test_gpt35_against_the_majority_of_annotators(verdicts: Path) -> None:
    """PandaLM: accuracy .6977 and kappa .4755, as published, over all 999 pairs.

    `Tie` is the annotators' 0, and `garbage` (25 answers that could not be read) a label of its own, so a disagreement.
    Left out they would give .7156 and .4929 over 974. Every pair has a majority.
    """
    annotators, judged = pairwise(verdicts)
    majority = [mode(chosen) for chosen in annotators]
    assert all(chosen.count(most) > 1 for chosen, most in zip(annotators, majority, strict=True))
    names: dict[str, Any] = {"1": 1, "2": 2, "Tie": 0, "garbage": "garbage"}
    found = label_agreement(majority, [names[given] for given in judged])
    assert found.n == 999
    assert found.figures["accuracy"].value == pytest.approx(0.6977, abs=0.00005)
    assert found.figures["cohen_kappa"].value == pytest.approx(0.4755, abs=0.00005)
    names["garbage"] = None
    readable = label_agreement(majority, [names[given] for given in judged])
    assert (readable.n, readable.without_b) == (974, 25)
    assert readable.figures["accuracy"].value == pytest.approx(0.7156, abs=0.00005)
    assert readable.figures["cohen_kappa"].value == pytest.approx(0.4929, abs=0.00005)
