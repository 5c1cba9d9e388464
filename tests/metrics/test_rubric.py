from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaltrack.errors import UsageError
from evaltrack.metrics import rubric
from evaltrack.metrics.rubric import DIMENSION_WEIGHTS, TIERS, Grading, RubricWeights, grade
from evaltrack.records import Dimensions, Observed
from tests.files import data

WORKED = (8, 8, 9, 8, 9, 9, 7, 8)


def observed(dimensions: tuple[float, ...] = WORKED, **fields: Any) -> Observed:
    """The worked example, unless `fields` say otherwise."""
    seen = {
        "dimensions": Dimensions(**dict(zip(DIMENSION_WEIGHTS, dimensions, strict=True))),
        "hypotheses": 5,
        "shifts": 4,
        "crux_treatment": "justified",
        "uncertainty_treatment": "caveats",
        "confidence": 70,
        "mode": "converge",
    }
    return Observed(**seen | fields)


def scored(dimensions: tuple[float, ...], weights: RubricWeights = rubric.DEFAULT_WEIGHTS) -> int:
    return grade(observed(dimensions, confidence=None), weights).score


def refused(act: Callable[[], object]) -> str:
    with pytest.raises(UsageError) as raised:
        act()
    return str(raised.value)


def test_the_worked_example() -> None:
    """Section 8: 70 % with 5 hypotheses and 4 shifts costs nothing; the score is 83, tier 3."""
    expected = {"claimed_band": 3, "earned_band": 3, "coupling_gap": 0, "penalty": 0, "mode": "converge"}
    assert grade(observed()) == Grading(score=83, tier=3, hard_fails=(), **expected)


@pytest.mark.parametrize(("name", "weight"), data("metrics.json")["dimensions_and_weights"])
def test_dimensions_and_weights(name: str, weight: float) -> None:
    """Section 2: a 10 in one dimension and 0 in all others scores that dimension's weight, in percent."""
    assert DIMENSION_WEIGHTS[name] == weight
    dimensions = tuple(10 if other == name else 0 for other in DIMENSION_WEIGHTS)
    assert scored(dimensions) == round(100 * weight)


@pytest.mark.parametrize("code", ["HF1", "HF2", "HF3", "HF4"])
def test_hard_fails(code: str) -> None:
    """Section 4: each condition observed makes the score 0, regardless of the dimensions, and is named."""
    graded = grade(observed((10,) * 8, hard_fails=(code,)))
    assert (graded.score, graded.tier, graded.hard_fails) == (0, 0, (code,))


def test_hard_fails_are_sorted_and_named_once() -> None:
    fails = ("HF4", "HF1", "HF4")
    assert grade(observed(hard_fails=fails, confidence=95, hypotheses=0)).hard_fails == ("HF1", "HF4", "HF5")
    graded = grade(observed(hard_fails=fails, confidence=95))
    assert (graded.hard_fails, graded.penalty, graded.coupling_gap, graded.score) == (("HF1", "HF4"), 10, 1, 0)


@pytest.mark.parametrize(
    ("confidence", "band"),
    [
        *[(0, 1), (49.999, 1), (50, 2), (69.999, 2), (70, 3), (90, 3), (90.001, 4), (100, 4)],
        (None, None),
    ],
)
def test_bounds_of_the_bands(confidence: float | None, band: int | None) -> None:
    """50 and 70 begin their band, 90 still belongs to the one below; without a confidence there is no band."""
    assert rubric.claimed_band(confidence) == band
    assert grade(observed(confidence=confidence)).claimed_band == band


@pytest.mark.parametrize(("confidence", "claimed"), [(None, 0), (25, 1), (60, 2), (80, 3), (95, 4)])
def test_the_whole_coupling_table(confidence: float | None, claimed: int) -> None:
    """Every number of hypotheses and shifts, every treatment: gap, penalty, HF5 and score are those of the table."""
    outcomes = [(83, 0, ()), (73, 10, ()), (58, 25, ()), (0, 0, ("HF5",)), (0, 0, ("HF5",))]
    dimensions = observed().dimensions
    for hypotheses, shifts, crux, doubt in product(range(8), range(7), range(5), range(5)):
        counts = bisect_right((2, 3, 4, 5), hypotheses), bisect_right((1, 2, 3, 4), shifts)
        earned = min(*counts, crux, doubt)  # a chain of rising requirements is as good as its weakest link
        score, penalty, fails = outcomes[max(0, claimed - earned)]
        expected = score, earned, None if confidence is None else max(0, claimed - earned), penalty, fails
        seen = Observed.model_construct(
            dimensions=dimensions,
            hypotheses=hypotheses,
            shifts=shifts,
            crux_treatment=("none", "attempted", "stated", "explicit", "justified")[crux],
            uncertainty_treatment=("none", "limits", "quantified", "caveats", "counterarguments")[doubt],
            confidence=confidence,
            mode="hybrid",
        )
        got = grade(seen)
        assert (got.score, got.earned_band, got.coupling_gap, got.penalty, got.hard_fails) == expected, seen


@pytest.mark.parametrize(
    ("tier", "label", "scores", "action"),
    [
        (0, "Hard Fail", range(1), "Reject, escalate"),
        (1, "Soft Fail", range(1, 50), "Reject, revise"),
        (2, "Warning", range(50, 70), "Flag, may accept with caveats"),
        (3, "Pass", range(70, 101), "Accept"),
    ],
)
def test_tiers(tier: int, label: str, scores: range, action: str) -> None:
    """Each whole score has its tier, with label and action; from 70 on it passes."""
    assert TIERS[tier] == rubric.Tier(tier, label, scores[0], scores[-1], action)
    assert {rubric.tier_of(score) for score in scores} == {tier}
    assert {score >= rubric.PASS_SCORE for score in scores} == {tier == 3}
    assert rubric.tier_words(tier, ["HF1"]) == f"{label}: {action.lower()}"
    assert ("without a hard fail" in rubric.tier_words(tier, ())) == (tier == 0)


@pytest.mark.parametrize(
    ("tier", "hard_fails", "needed"),
    [
        *[(0, (code,), "refused") for code in ("HF1", "HF2", "HF3", "HF4", "HF5")],
        (3, ["HF1"], "refused"),
        (0, (), "justification"),
        (1, (), "justification"),
        (2, (), "acknowledgement"),
        (3, (), "none needed"),
    ],
)
def test_acceptance_gates(tier: int, hard_fails: Any, needed: str) -> None:
    """Section 6: a hard fail has no bypass; below 50 a justification, below 70 an acknowledgement."""
    assert rubric.acceptance(tier, hard_fails) == needed


@pytest.mark.parametrize(("dimensions", "score"), data("metrics.json")["half_points"])
def test_half_points_are_rounded_up(dimensions: tuple[float, ...], score: int) -> None:
    assert scored(dimensions) == score


def test_weights_are_read_over_the_defaults() -> None:
    assert RubricWeights.parse("") == RubricWeights() == RubricWeights(**DIMENSION_WEIGHTS)
    expected = RubricWeights(h_count=0.3, oscillation=0.1)
    assert RubricWeights.parse("h_count=0.3,oscillation=0.1") == expected
    assert RubricWeights.parse(" h_count = .3 , oscillation=1e-1,, ") == expected
    assert grade(observed(confidence=None), RubricWeights(1, 0, 0, 0, 0, 0, 0, 0)).score == 80


@pytest.mark.parametrize(("text", "message"), data("metrics.json")["unreadable_weights"])
def test_weights_that_cannot_be_read(text: str, message: str) -> None:
    assert refused(lambda: RubricWeights.parse(text)) == f"rubric weights: {message}"


def test_weights_sum_to_one() -> None:
    """A sum off 1 by more than 1e-9 is refused and told; 1e-9 itself is not, and no noise of floats counts."""
    told = re.escape("rubric weights: the sum is 1.1, not 1; change others too: h_count=0.3,oscillation=0.2,")
    assert re.match(told, refused(lambda: RubricWeights.parse("h_count=0.3")))
    RubricWeights.parse("h_count=1" + "".join(f",{name}=0" for name in list(DIMENSION_WEIGHTS)[1:]))
    for weight in (0.199999999, 0.2, 0.200000001):
        RubricWeights.parse(f"h_count={weight}")
    for weight in (0.1999999989, 0.2000000011):
        assert "the sum is" in refused(partial(RubricWeights.parse, f"h_count={weight}"))


def test_the_score_is_held_on_its_scale() -> None:
    """A penalty larger than the points leaves 0, tier 0, without a hard fail; weights above 1 in all leave 100."""
    graded = grade(observed((1,) * 8, confidence=95, hypotheses=3))
    assert (graded.score, graded.tier, graded.penalty, graded.hard_fails) == (0, 0, 25, ())
    assert scored((10,) * 8, RubricWeights(h_count=0.21)) == 100


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.lists(st.integers(0, 200), min_size=8, max_size=8), st.permutations([20, 20, 15, 15, 10, 10, 5, 5]))
def test_rounding_is_that_of_whole_numbers(twentieths: list[int], percents: list[int]) -> None:
    """Grades in steps of 0.05 and weights in percent give the score that whole numbers alone give."""
    weights = RubricWeights(*(percent / 100 for percent in percents))
    doubled = sum(grades * percent for grades, percent in zip(twentieths, percents, strict=True))
    assert scored(tuple(grades / 20 for grades in twentieths), weights) == (doubled + 100) // 200
