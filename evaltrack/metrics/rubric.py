"""Scores reasoning by a rubric from a judge's observations: weighted dimensions, penalties, hard fails and tiers.

Confidence is in percent. A *band* is a row of the coupling table, from 1 (below 50 %) to 4 (above 90 %). The expressed
confidence gives the claimed band, the observed process the earned band. A gap between the two costs points, or is the
hard fail HF5. A judge is shown the tables of `rubric.toml`, and `evaltrack rubric` prints them.
"""

from __future__ import annotations

import math
import operator
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from importlib.resources import files
from typing import Any, Literal, TypeAlias, get_args

from evaltrack.errors import UsageError
from evaltrack.records import Dimensions, Observed, Reasoned
from evaltrack.records.base import count
from evaltrack.records.json_text import unknown_field
from evaltrack.records.verdict import CruxTreatment, Mode, UncertaintyTreatment

RUBRIC_VERSION = 2
"""Incremented whenever a definition here changes. Runs are compared only within one version."""

PASS_SCORE = 70
"""The lowest score with which a response passes."""

Acceptance: TypeAlias = Literal["refused", "justification", "acknowledgement", "none needed"]


@dataclass(frozen=True)
class RubricWeights:
    """The weight of each dimension in the score, from 0 to 1. The weights sum to 1, which `parse` checks."""

    h_count: float = 0.20
    oscillation: float = 0.20
    crux: float = 0.15
    epistemic_honesty: float = 0.15
    process_integrity: float = 0.10
    actionability: float = 0.10
    brevity: float = 0.05
    format: float = 0.05

    def __str__(self) -> str:
        return ",".join(f"{name}={weight:.15g}" for name, weight in asdict(self).items())

    @classmethod
    def parse(cls, text: str) -> RubricWeights:
        """Read weights from `text`, such as ``h_count=0.3,oscillation=0.1``. Other dimensions keep their default.

        Raises:
            UsageError: a dimension is unknown or repeated, a weight is no number from 0 to 1, or the sum is off 1 by
                more than 1e-9.
        """
        values: dict[str, float] = {}
        for part in filter(None, map(str.strip, text.split(","))):
            name, _, number = map(str.strip, part.partition("="))
            if name not in DIMENSION_WEIGHTS:
                raise UsageError(f"rubric weights: {unknown_field(name, DIMENSIONS)}")
            if name in values:
                raise UsageError(f"rubric weights: {name} is given twice; write it once")
            if re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", number, re.IGNORECASE | re.ASCII) is None:
                raise UsageError(f"rubric weights: `{part}`: `{number}` is not a number; write e.g. {name}=0.2")
            values[name] = float(number)
            if not 0 <= values[name] <= 1:
                raise UsageError(f"rubric weights: {name} is {values[name]:.15g}; write a number from 0 to 1")
        weights = cls(**values)
        total = sum(map(_exact, asdict(weights).values()), Fraction())
        if abs(total - 1) > Fraction(1, 10**9):
            raise UsageError(f"rubric weights: the sum is {float(total):.15g}, not 1; change others too: {weights}")
        return weights


DEFAULT_WEIGHTS = RubricWeights()
DIMENSION_WEIGHTS: Mapping[str, float] = asdict(DEFAULT_WEIGHTS)
"""Dimension -> default weight."""


TABLES: Mapping[str, Any] = tomllib.loads(files(__package__).joinpath("rubric.toml").read_text("utf-8"))
"""The tables of the rubric by name."""


@dataclass(frozen=True)
class Tier:
    """A row of the tier table: whole scores from `low` to `high`, both included, and the action they require."""

    tier: int
    label: str
    low: int
    high: int
    action: str


TIERS: Mapping[int, Tier] = {row["tier"]: Tier(**row) for row in TABLES["tiers"]}
"""Number -> tier."""

COUPLED = ("hypotheses", "shifts", "crux", "uncertainty")
"""The columns of the coupling table that a process must reach."""

PENALTIES: Mapping[int, int] = {1: 10, 2: 25}
"""Gap between the claimed and the earned band -> points lost. A gap of 3 or more is HF5."""


class Grading(Reasoned):
    """The rubric's result for one observation.

    `score` is a whole number of points, 0 to 100. `claimed_band` and `coupling_gap` are None if no confidence is
    expressed. `penalty` is the points lost by coupling. It is 0 if HF5 applies instead. A violation is a `coupling_gap`
    of 1 or more. `hard_fails` are the observed codes and HF5, sorted.
    """

    score: int


def claimed_band(confidence: float | None) -> int | None:
    """Return the band of a confidence in percent: above 90: 4, 70 to 90: 3, 50 up to 70: 2, below: 1.

    Both 70 and 90 are in band 3, as in section 8. None if no confidence is expressed.
    """
    if confidence is None:
        return None
    return 4 if confidence > 90 else 3 if confidence >= 70 else 2 if confidence >= 50 else 1


def earned_band(observed: Observed) -> int:
    """Return the highest band whose four requirements are all met, or 0."""
    ranks = _ranks(observed.hypotheses, observed.shifts, observed.crux_treatment, observed.uncertainty_treatment)
    rows = ((row["band"], _ranks(*(row[name] for name in COUPLED))) for row in TABLES["coupling"])
    return max((band for band, least in rows if all(map(operator.ge, ranks, least))), default=0)


def grade(observed: Observed, weights: RubricWeights = DEFAULT_WEIGHTS) -> Grading:
    """Return the score and its parts.

    Score = 10 x sum(weight x dimension) - penalty, rounded half up and limited to 0 to 100. Any hard fail makes it 0.
    It is computed exactly, with each float as the decimal number that it prints as. `weights` are not validated here.
    """
    claimed, earned = claimed_band(observed.confidence), earned_band(observed)
    gap = None if claimed is None else max(claimed - earned, 0)
    penalty = PENALTIES.get(gap or 0, 0)
    hard_fails = sorted({*observed.hard_fails, *(["HF5"] if gap is not None and gap >= 3 else [])})
    shares = (_exact(w) * _exact(getattr(observed.dimensions, name)) for name, w in asdict(weights).items())
    score = 0 if hard_fails else min(max(math.floor(10 * sum(shares) - penalty + Fraction(1, 2)), 0), 100)
    return Grading(
        score=score,
        tier=tier_of(score),
        claimed_band=claimed,
        earned_band=earned,
        coupling_gap=gap,
        penalty=penalty,
        hard_fails=tuple(hard_fails),
        mode=observed.mode,
    )


def tier_of(score: int) -> int:
    """Return the tier of a whole score from 0 to 100."""
    return next(number for number, tier in TIERS.items() if tier.low <= score <= tier.high)


def acceptance(tier: int, hard_fails: Collection[str]) -> Acceptance:
    """Return the condition for accepting a response despite its score (the acceptance gates).

    Nothing bypasses a hard fail. The gates treat a score of 0 without a hard fail as any other score below 50.
    """
    if hard_fails:
        return "refused"
    return "none needed" if tier == 3 else "acknowledgement" if tier == 2 else "justification"


def tier_words(tier: int, hard_fails: Collection[str]) -> str:
    """Return a tier's label and required action, such as ``Soft Fail: reject, revise``.

    The two tables treat a score of 0 without a hard fail differently, so the text says so. It has the label of tier 0
    and the gate of a soft fail, because there is no hard fail that could not be bypassed.
    """
    entry = TIERS[tier]
    without = ", though without a hard fail: a justification can accept it" if tier == 0 and not hard_fails else ""
    return f"{entry.label}: {entry.action.lower()}{without}"


def _ranks(hypotheses: int, shifts: int, crux: CruxTreatment, uncertainty: UncertaintyTreatment) -> tuple[int, ...]:
    """Return comparable numbers. The types list their treatments from least to most."""
    return hypotheses, shifts, get_args(CruxTreatment).index(crux), get_args(UncertaintyTreatment).index(uncertainty)


def _exact(number: float) -> Fraction:
    """Return the decimal number that a float prints as: 0.15 is 15/100, so no rounding error changes a result."""
    return Fraction(str(number))


DIMENSIONS = tuple(Dimensions.model_fields)
MODES: tuple[str, ...] = get_args(Mode)
TIER_SCORES = ("tier_0", "tier_1", "tier_2", "tier_3")


def reasoned(observed: Sequence[Observed], weights: RubricWeights) -> tuple[dict[str, float], Reasoned]:
    """Return the scores of one response that at least one judge observed, and the results behind them."""
    gradings = [grade(each, weights) for each in observed]
    means = _means(gradings, observed)
    score = means["reasoning_score"]
    tier = tier_of(math.floor(score) or math.ceil(score))  # a mean of 69.5 does not pass, one of 0.5 is no hard fail
    gaps = [grading.coupling_gap for grading in gradings if grading.coupling_gap is not None]
    worst = max(gradings, key=lambda grading: -1 if grading.coupling_gap is None else grading.coupling_gap)
    modes = [grading.mode for grading in gradings]
    mode = max(modes, key=modes.count)  # the first of equally frequent ones
    scores = {
        **means,
        **({"coupling_violation": float(any(gaps))} if gaps else {}),
        **{name: float(name == f"tier_{tier}") for name in TIER_SCORES},
        **{f"mode_{name}": float(name == mode) for name in MODES},
    }
    hard_fails = tuple(sorted({code for grading in gradings for code in grading.hard_fails}))
    led_to = Reasoned(**worst.model_dump(exclude={"score"}) | {"tier": tier, "hard_fails": hard_fails, "mode": mode})
    return scores, led_to


def _means(gradings: Sequence[Grading], observed: Sequence[Observed]) -> dict[str, float]:
    """Return the values that are means over the panel. Each judge gave all of them."""
    by_name: dict[str, list[float | None]] = {
        "reasoning_score": [grading.score for grading in gradings],
        "hypotheses": [each.hypotheses for each in observed],
        "shifts": [each.shifts for each in observed],
        **{name: [getattr(each.dimensions, name) for each in observed] for name in DIMENSIONS},
    }
    return {name: mean for name, values in by_name.items() if (mean := panel_mean(values)) is not None}


def panel_mean(values: Sequence[float | None]) -> float | None:
    """Return the mean over the judges of a panel; None if one gave no value, as fewer judges are another measure.

    It is exact in the given decimals: the mean of .7, .7 and 1.0 is .8, which passes at .8.
    """
    exact = [_exact(value) for value in values if value is not None]
    if not exact or len(exact) < len(values):
        return None
    return float(sum(exact) / len(exact))


ANCHORS: Mapping[str, Mapping[str, str]] = {
    name: {grade: row[grade] for grade in ("0", "5", "10")} for name, row in TABLES["dimensions"].items()
}
"""Dimension -> grade -> the responses that get it. Grades in between are allowed."""

COUNTS: Mapping[str, Mapping[str, Any]] = TABLES["counts"]
"""Dimension -> the observation that is counted for it, and the grades that a count allows."""


def reasoning_rubric(weights: str = "") -> dict[str, Any]:
    """Return the reasoning rubric as JSON: dimensions, weights, anchors, hard fails, coupling, tiers, gates and aims.

    Args:
        weights: Other weights, such as ``h_count=0.3,oscillation=0.1``. All weights must sum to 1.

    Raises:
        UsageError: the weights are wrong.
    """
    from evaltrack.metrics.criteria import RUBRIC_AIMS  # the metrics with aims are made of these tables

    return {
        "dimensions": [_dimension(name, weight) for name, weight in asdict(RubricWeights.parse(weights)).items()],
        "hard_fails": TABLES["hard_fails"],
        "coupling": TABLES["coupling"],
        "penalties": {str(gap): points for gap, points in PENALTIES.items()},
        "tiers": TABLES["tiers"],
        "gates": TABLES["gates"],
        "pass_score": PASS_SCORE,
        "aims": [{"metric": name, **asdict(aim), "improvement": aim.improvement} for name, aim in RUBRIC_AIMS.items()],
        "modes": TABLES["modes"],
        "readings": TABLES["readings"],
    }


def _dimension(name: str, weight: float) -> dict[str, Any]:
    """Return a dimension with its anchors and, for each count that limits its grade, the exclusive upper bound."""
    return {
        "name": name,
        "weight": weight,
        "measures": TABLES["dimensions"][name]["measures"],
        "anchors": ANCHORS[name],
        "below_by_count": {str(number): below for number, below in enumerate(COUNTS.get(name, {}).get("below", ()))},
    }


def misfits(observed: Observed) -> Iterator[str]:
    """Yield a message for each grade that its own count contradicts."""
    for dimension, rule in COUNTS.items():
        number, grade = getattr(observed, rule["what"]), getattr(observed.dimensions, dimension)
        seen = count(number, rule["one"], rule["what"])
        if number < len(rule["below"]) and grade >= rule["below"][number]:
            yield f"{dimension} is {grade:g}, but with {seen} it is below {rule['below'][number]:g}"
        if grade == 0 and number >= rule["not_zero"]:
            yield f"{dimension} is 0, but there are {seen}; 0 is for {ANCHORS[dimension]['0'].lower()}"
