"""How far a judge's scores scatter when the same responses are judged again. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import fsum, sqrt
from statistics import NormalDist

CONFIDENCE = 0.95

TOLERANCE = {"overall_score": Fraction(5, 100), "reasoning_score": Fraction(5)}
"""Within +-5 % of its scale a score counts as replayed (P3)."""


@dataclass(frozen=True)
class Replayed:
    """One response: its score in the run, and those of each time it was judged again (None: the judge failed)."""

    id: str
    score: float
    again: tuple[float | None, ...]
    passed: bool | None = None
    passed_again: tuple[bool | None, ...] = ()
    tier: int | None = None
    tiers_again: tuple[int | None, ...] = ()

    @property
    def measured(self) -> list[float]:
        """The scores of the times that worked."""
        return [value for value in self.again if value is not None]

    @property
    def spread(self) -> float:
        """Highest minus lowest score, the run's own included."""
        return max([self.score, *self.measured]) - min([self.score, *self.measured])

    @property
    def changed(self) -> bool:
        """Whether any time ended in another tier, or passed where it had not, or the other way round."""
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
    population: int = 0
    """Judged responses of the run, of which `rows` may be a sample."""

    @property
    def num_verdicts(self) -> int:
        """How many verdicts were asked for."""
        return self.times * len(self.rows)

    @property
    def failed(self) -> int:
        """How many of them could not be had."""
        return sum(value is None for row in self.rows for value in row.again)

    @property
    def share_within(self) -> float | None:
        """Share of the verdicts had that lie within `TOLERANCE` of the run's; None where none was had."""
        tolerance = TOLERANCE[self.score]
        near = [abs(_exact(value) - _exact(row.score)) <= tolerance for row in self.rows for value in row.measured]
        return sum(near) / len(near) if near else None

    @property
    def mean_spread(self) -> float | None:
        """Mean of the spreads of the responses."""
        spreads = [row.spread for row in self.rows if row.measured]
        return fsum(spreads) / len(spreads) if spreads else None

    @property
    def num_changed(self) -> int:
        """Responses that changed tier or outcome."""
        return sum(row.changed for row in self.rows)

    @property
    def noise(self) -> float | None:
        """Half the width of the band in which the difference of two runs' means lies by the judge's scatter alone.

        95 % of such differences: 1.96 * sqrt(2 * variance of one run's mean), from the scatter of each response's own
        scores (unbiased variance over the run's score and the replayed ones); a sample speaks for the `population`.
        None where no response was judged twice.
        """
        variances = [_variance([row.score, *row.measured]) for row in self.rows if row.measured]
        if not variances:
            return None
        of_mean = fsum(variances) / len(variances) / max(self.population, len(variances))
        return NormalDist().inv_cdf(0.5 + CONFIDENCE / 2) * sqrt(2 * of_mean)

    @property
    def metrics(self) -> Mapping[str, float]:
        """What the child run's metrics hold."""
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
    """The decimal number a float prints as, so that exactly the tolerance is within it."""
    return Fraction(str(value))
