"""What reasoning should reach over a naive single-shot answer, and what such answers were published to reach. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """One aim of the rubric: the mean to reach, and that of the published baseline, naive single-shot answers."""

    aim: float
    published: float
    higher_is_better: bool

    @property
    def improvement(self) -> float:
        """The change from the published baseline to the aim, relative to the baseline: 1.92 is +192 %."""
        return relative(self.aim, self.published)

    def reached(self, measured: float) -> bool:
        """Whether a mean reaches the aim; of what should be low it stays below it."""
        return measured >= self.aim if self.higher_is_better else measured < self.aim


TARGETS: Mapping[str, Target] = {
    "hypotheses": Target(aim=3.5, published=1.2, higher_is_better=True),
    "shifts": Target(aim=2.8, published=0.3, higher_is_better=True),
    "coupling_violation_rate": Target(aim=0.10, published=0.45, higher_is_better=False),
}
"""Metric -> its aim."""


@dataclass(frozen=True)
class Measured:
    """One aim beside the mean of a run; `improvement` is the run's over the published baseline."""

    metric: str
    measured: float
    target: Target

    @property
    def reached(self) -> bool:
        """Whether the run reaches the aim."""
        return self.target.reached(self.measured)

    @property
    def improvement(self) -> float:
        """The change from the published baseline to the run, relative to the baseline."""
        return relative(self.measured, self.target.published)


def measured_aims(metrics: Mapping[str, float]) -> Iterator[Measured]:
    """Each aim whose metric a run measured."""
    for name, target in TARGETS.items():
        if name in metrics:
            yield Measured(name, metrics[name], target)


def relative(value: float, base: float) -> float:
    """The change from a base that is not 0, relative to it."""
    return (value - base) / base
