"""Measures the reliability of a judge: its agreement with another judge, and the repeatability of its scores. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import fsum, sqrt
from statistics import NormalDist
from typing import Any

from evaltrack.metrics.catalogue import BY_NAME
from evaltrack.metrics.rubric import DIMENSIONS
from evaltrack.records.verdict import ANSWER_GRADES
from evaltrack.stats.agreement import Agreement, label_agreement, numeric_agreement

Values = Mapping[str, Any]


SCORE = {"answer": "overall_score", "reasoning": "reasoning_score"}
"""The score of a judge's grades, by rubric."""
SCALES = {
    "answer": {name: BY_NAME[name].span or 1.0 for name in ANSWER_GRADES},
    "reasoning": {name: BY_NAME[name].span or 1.0 for name in (SCORE["reasoning"], *DIMENSIONS)},
}
"""The scale of each grade. A tolerance is a share of it."""
COUNTED = {"answer": (), "reasoning": ("hypotheses", "shifts")}
"""Counts, which have no scale: two judges agree up to a difference of 1."""
TOLERANCES = {
    "answer": dict.fromkeys(SCALES["answer"], 0.1),
    "reasoning": {"reasoning_score": 0.05, **dict.fromkeys(DIMENSIONS, 0.1)},
}
"""Default tolerance for each grade, as a share of its scale."""
LABELS = {
    "answer": ("outcome", "declined"),
    "reasoning": ("tier", "hard_fails", "crux_treatment", "uncertainty_treatment", "mode"),
}


@dataclass(frozen=True)
class Disagreement:
    """One response whose scores differ by more than the tolerance."""

    id: str
    score: float
    other: float

    @property
    def gap(self) -> float:
        """The difference of the scores."""
        return abs(self.score - self.other)


@dataclass(frozen=True)
class Within:
    """The agreement of two judges on the score.

    `share` of `n` responses are within the tolerance, `needed` is the required share. `tolerance` is a share of the
    score's scale. `agree` is None if no response has both scores.
    """

    tolerance: float
    needed: float
    share: float | None
    n: int

    @property
    def agree(self) -> bool | None:
        """True if the share is at least `needed`; None if no response has both scores."""
        return None if self.share is None else self.share >= self.needed - 1e-9


@dataclass(frozen=True)
class JudgesAgreement:
    """The agreement of a run's judge with another: each measure with its figures, and the disagreements, largest first.

    `tolerances` are the differences up to which both agree, in the unit of each number.
    """

    run_id: str
    judge: str
    other: str
    rubric: str
    numbers: Mapping[str, Agreement]
    labels: Mapping[str, Agreement]
    disagreements: tuple[Disagreement, ...]
    tolerances: Mapping[str, float]
    within: Within

    @property
    def kappa(self) -> float | None:
        """Quadratic-weighted kappa of the score; None if it is not defined."""
        return self.numbers[SCORE[self.rubric]].figures["quadratic_kappa"].value


def agreement_of(
    judges: tuple[str, str],
    run_id: str,
    rubric: str,
    own: Mapping[str, Values],
    others: Mapping[str, Values],
    tolerance: float | None,
    needed: float,
    resamples: int,
) -> JudgesAgreement:
    """Return the agreement of two judges on the responses, by question id."""
    ids, score, tolerances = sorted({*own, *others}), SCORE[rubric], tolerances_of(rubric, tolerance)

    def columns(name: str) -> tuple[list[Any], list[Any]]:
        one, other = ([side.get(key, {}).get(name) for key in ids] for side in (own, others))
        return one, other

    numbers = {
        name: numeric_agreement(*columns(name), tolerance=allowed, resamples=resamples)
        for name, allowed in tolerances.items()
    }
    labels = {name: label_agreement(*columns(name), resamples=resamples) for name in LABELS[rubric]}
    near = numbers[score].figures["share_within"]
    within = Within(tolerances[score] / SCALES[rubric][score], needed, near.value, near.n)
    both = [Disagreement(*each) for each in zip(ids, *columns(score), strict=True) if None not in each]
    apart = sorted((each for each in both if each.gap > tolerances[score] + 1e-9), key=lambda each: -each.gap)
    return JudgesAgreement(run_id, *judges, rubric, numbers, labels, tuple(apart), tolerances, within)


def tolerances_of(rubric: str, share: float | None) -> dict[str, float]:
    """Return the difference up to which two judges agree on each number, in its unit."""
    scales, usual = SCALES[rubric], TOLERANCES[rubric]
    graded = {name: scale * (usual[name] if share is None else share) for name, scale in scales.items()}
    return graded | dict.fromkeys(COUNTED[rubric], 1.0)


CONFIDENCE = 0.95

TOLERANCE = {"overall_score": Fraction(5, 100), "reasoning_score": Fraction(5)}
"""A score within +-5 % of its scale counts as repeated (P3)."""


@dataclass(frozen=True)
class Replayed:
    """One response: its score in the run, and the scores of each repetition (None: the judge failed)."""

    id: str
    score: float
    again: tuple[float | None, ...]
    passed: bool | None = None
    passed_again: tuple[bool | None, ...] = ()
    tier: int | None = None
    tiers_again: tuple[int | None, ...] = ()

    @property
    def measured(self) -> list[float]:
        """The scores of the repetitions without errors."""
        return [value for value in self.again if value is not None]

    @property
    def spread(self) -> float:
        """Highest minus lowest score, including the run's score."""
        return max([self.score, *self.measured]) - min([self.score, *self.measured])

    @property
    def changed(self) -> bool:
        """True if any repetition changed the tier or the outcome."""
        tiers = {tier for tier in (self.tier, *self.tiers_again) if tier is not None}
        outcomes = {passed for passed in (self.passed, *self.passed_again) if passed is not None}
        return len(tiers) > 1 or len(outcomes) > 1


@dataclass(frozen=True)
class Replay:
    """All responses of a run, judged again `times` times; `score` is `overall_score` or `reasoning_score`."""

    run_id: str
    judge: str
    judge_prompt: str
    score: str
    times: int
    rows: tuple[Replayed, ...]
    left_out: int
    usage_tokens: int

    @property
    def num_verdicts(self) -> int:
        """The number of requested verdicts."""
        return self.times * len(self.rows)

    @property
    def failed(self) -> int:
        """The number of verdicts that failed."""
        return sum(value is None for row in self.rows for value in row.again)

    @property
    def share_within(self) -> float | None:
        """Share of the repeated scores within `TOLERANCE` of the run's score; None if there are none."""
        tolerance = TOLERANCE[self.score]
        near = [abs(_exact(value) - _exact(row.score)) <= tolerance for row in self.rows for value in row.measured]
        return sum(near) / len(near) if near else None

    @property
    def mean_spread(self) -> float | None:
        """Mean of the spreads of the responses; None if there are none."""
        spreads = [row.spread for row in self.rows if row.measured]
        return fsum(spreads) / len(spreads) if spreads else None

    @property
    def num_changed(self) -> int:
        """The number of responses that changed tier or outcome."""
        return sum(row.changed for row in self.rows)

    @property
    def noise(self) -> float | None:
        """Half the width of the band of the difference of two runs' means that the judge's scatter alone explains.

        It holds 95 % of such differences: 1.96 * sqrt(2 * variance of one run's mean), from the scatter of each
        response's own scores (unbiased variance over the run's score and the replayed ones). None if no response was
        judged twice.
        """
        variances = [_variance([row.score, *row.measured]) for row in self.rows if row.measured]
        if not variances:
            return None
        of_mean = fsum(variances) / len(variances) / len(self.rows)
        return NormalDist().inv_cdf(0.5 + CONFIDENCE / 2) * sqrt(2 * of_mean)

    @property
    def metrics(self) -> Mapping[str, float]:
        """The metrics of the child run."""
        metrics = {
            "replay.share_within": self.share_within,
            "replay.mean_spread": self.mean_spread,
            "replay.noise": self.noise,
            "replay.num_responses": float(len(self.rows)),
            "replay.num_changed": float(self.num_changed),
            "replay.num_errors": float(self.failed),
        }
        return {name: value for name, value in metrics.items() if value is not None}


def _variance(values: Sequence[float]) -> float:
    mean = fsum(values) / len(values)
    return fsum((value - mean) ** 2 for value in values) / (len(values) - 1)


def _exact(value: float) -> Fraction:
    """Return the decimal number that a float prints as, so that a value exactly at the tolerance is within it."""
    return Fraction(str(value))
