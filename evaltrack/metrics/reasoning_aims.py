"""What reasoning should reach over a naive single-shot answer, and what such answers were published to reach. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from evaltrack.metrics.catalogue import SCORES


@dataclass(frozen=True)
class RubricAim:
    """One aim of the rubric: the mean to reach, and that of the published baseline, naive single-shot answers."""

    mean: float
    published: float
    higher_is_better: bool

    @property
    def improvement(self) -> float:
        """The change from the published baseline to the aim, relative to the baseline: 1.92 is +192 %."""
        return relative(self.mean, self.published)

    def reached(self, measured: float) -> bool:
        """Whether a mean reaches the aim; of what should be low it stays below it."""
        return measured >= self.mean if self.higher_is_better else measured < self.mean


RUBRIC_AIMS: Mapping[str, RubricAim] = {
    score.metric: RubricAim(score.aim.mean, score.aim.published, score.higher_is_better)
    for score in SCORES
    if score.aim
}
"""Metric -> its aim."""


@dataclass(frozen=True)
class MeasuredAim:
    """One aim beside the mean of a run; `improvement` is the run's over the published baseline."""

    metric: str
    measured: float
    aim: RubricAim

    @property
    def reached(self) -> bool:
        """Whether the run reaches the aim."""
        return self.aim.reached(self.measured)

    @property
    def improvement(self) -> float:
        """The change from the published baseline to the run, relative to the baseline."""
        return relative(self.measured, self.aim.published)


def measured_aims(metrics: Mapping[str, float]) -> Iterator[MeasuredAim]:
    """Each aim whose metric a run measured."""
    for name, aim in RUBRIC_AIMS.items():
        if name in metrics:
            yield MeasuredAim(name, metrics[name], aim)


def relative(value: float, base: float) -> float:
    """The change from a base that is not 0, relative to it."""
    return (value - base) / base
