"""From what judges observed in a piece of reasoning to its scores. Pure; `rubric.py` has the rules.

Of a panel each number is the mean over its judges; a hard fail that one of them saw makes that one's score 0, and a
coupling violation that one saw is one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import get_args

from evaltrack.metrics.rubric import Grading, RubricWeights, grade, tier_of
from evaltrack.records import Dimensions, Mode, Observed, Reasoned

DIMENSIONS = tuple(Dimensions.model_fields)
MODES: tuple[str, ...] = get_args(Mode)
TIER_SCORES = ("tier_0", "tier_1", "tier_2", "tier_3")


def reasoned(observed: Sequence[Observed], weights: RubricWeights) -> tuple[dict[str, float], Reasoned]:
    """The scores of one response that at least one judge observed, and what led to them."""
    gradings = [grade(each, weights) for each in observed]
    means = _means(gradings, observed)
    score = means["reasoning_score"]
    tier = tier_of(math.floor(score) or math.ceil(score))  # a mean of 69.5 does not pass, one of 0.5 is no hard fail
    gaps = [grading.coupling_gap for grading in gradings if grading.coupling_gap is not None]
    worst = max(gradings, key=lambda grading: -1 if grading.coupling_gap is None else grading.coupling_gap)
    mode = _mode(gradings)
    scores = {
        **means,
        **({"coupling_violation": float(any(gaps))} if gaps else {}),
        **{name: float(name == f"tier_{tier}") for name in TIER_SCORES},
        **{f"mode_{name}": float(name == mode) for name in MODES},
    }
    led_to = Reasoned(
        tier=tier,
        claimed_band=worst.claimed_band,
        earned_band=worst.earned_band,
        coupling_gap=worst.coupling_gap,
        penalty=worst.penalty,
        hard_fails=tuple(sorted({code for grading in gradings for code in grading.hard_fails})),
        mode=mode,
    )
    return scores, led_to


def _means(gradings: Sequence[Grading], observed: Sequence[Observed]) -> dict[str, float]:
    """What is a mean over the panel, each of whose judges gave all of it."""
    by_name: dict[str, list[float | None]] = {
        "reasoning_score": [grading.score for grading in gradings],
        "hypotheses": [each.hypotheses for each in observed],
        "shifts": [each.shifts for each in observed],
        **{name: [getattr(each.dimensions, name) for each in observed] for name in DIMENSIONS},
    }
    return {name: mean for name, values in by_name.items() if (mean := panel_mean(values)) is not None}


def _mode(gradings: Sequence[Grading]) -> Mode:
    """The mode most judges saw, of several such the first."""
    modes = [grading.mode for grading in gradings]
    return max(modes, key=modes.count)


def panel_mean(values: Sequence[float | None]) -> float | None:
    """The mean of what each judge of a panel gave, or None where one gave nothing: fewer judges are another measure.

    It is exact in the decimals that were given: .7, .7 and 1.0 are .8, which passes at .8.
    """
    exact = [Fraction(str(value)) for value in values if value is not None]
    if not exact or len(exact) < len(values):
        return None
    return float(sum(exact) / len(exact))
