"""Computes the reliability of a judge from its scores: agreement with another judge, repeatability, noise."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist, fmean, variance
from typing import Any

from pydantic import computed_field

from evaltrack.metrics.catalogue import BY_NAME
from evaltrack.metrics.rubric import DIMENSIONS
from evaltrack.records.verdict import ANSWER_GRADES
from evaltrack.stats.agreement import DECIMALS, Agreement, label_agreement, numeric_agreement

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
USUAL, USUAL_REASONING = 0.1, 0.05
"""Default tolerances, as shares of a grade's scale: of all grades, and of the reasoning score."""
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

    @computed_field
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

    @computed_field
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

    @computed_field
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
    usual = {"reasoning_score": USUAL_REASONING}
    shares = {name: usual.get(name, USUAL) if share is None else share for name in SCALES[rubric]}
    return {name: SCALES[rubric][name] * each for name, each in shares.items()} | dict.fromkeys(COUNTED[rubric], 1.0)


TOLERANCE = {"overall_score": 0.05, "reasoning_score": 5.0}
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

    @computed_field
    @property
    def spread(self) -> float:
        """Highest minus lowest score, including the run's score."""
        return max(self.score, *self.measured) - min(self.score, *self.measured) if self.measured else 0.0

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
    judge_tokens: int

    @computed_field
    @property
    def num_responses(self) -> int:
        """The number of responses that were judged again."""
        return len(self.rows)

    @property
    def num_verdicts(self) -> int:
        """The number of requested verdicts."""
        return self.times * len(self.rows)

    @computed_field
    @property
    def num_errors(self) -> int:
        """The number of verdicts that failed."""
        return sum(value is None for row in self.rows for value in row.again)

    @computed_field
    @property
    def share_within(self) -> float | None:
        """Share of the repeated scores within `TOLERANCE` of the run's score; None if there are none."""
        gaps = [round(abs(value - row.score), DECIMALS) for row in self.rows for value in row.measured]
        return sum(gap <= TOLERANCE[self.score] for gap in gaps) / len(gaps) if gaps else None

    @computed_field
    @property
    def mean_spread(self) -> float | None:
        """Mean of the spreads of the responses; None if there are none."""
        spreads = [row.spread for row in self.rows if row.measured]
        return fmean(spreads) if spreads else None

    @computed_field
    @property
    def num_changed(self) -> int:
        """The number of responses that changed tier or outcome."""
        return sum(row.changed for row in self.rows)

    @computed_field
    @property
    def noise(self) -> float | None:
        """Half the width of the band of the difference of two runs' means that the judge's scatter alone explains.

        It holds 95 % of such differences: 1.96 * sqrt(2 * variance of one run's mean), from the scatter of each
        response's own scores (unbiased variance over the run's score and the replayed ones). None if no response was
        judged twice.
        """
        variances = [variance([row.score, *row.measured]) for row in self.rows if row.measured]
        return NormalDist().inv_cdf(0.975) * sqrt(2 * fmean(variances) / len(self.rows)) if variances else None

    @property
    def metrics(self) -> Mapping[str, float]:
        """The metrics of the child run."""
        names = ("share_within", "mean_spread", "noise", "num_responses", "num_changed", "num_errors")
        values = {f"replay.{name}": getattr(self, name) for name in names}
        return {name: float(value) for name, value in values.items() if value is not None}
