"""What reasoning should reach over a naive single-shot answer, in a comparison. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evaltrack.metrics.reasoning_aims import RUBRIC_AIMS, relative

if TYPE_CHECKING:
    from evaltrack.compare.comparison import MetricDelta


@dataclass(frozen=True)
class ComparedAim:
    """One aim of the rubric in a comparison. Changes are relative to what they are measured from.

    `improvement` is the candidate's over the run that it is compared with (None where that is 0),
    `published_improvement` the candidate's over the `published` baseline, and `aim_improvement` the aim's over that.
    """

    metric: str
    aim: float
    baseline: float
    candidate: float
    reached: bool
    improvement: float | None
    published: float
    published_improvement: float
    aim_improvement: float


def aims_of(metrics: Iterable[MetricDelta]) -> Iterator[ComparedAim]:
    """Each aim whose metric both sides measured."""
    for metric in metrics:
        aim = RUBRIC_AIMS.get(metric.name)
        if aim is None:
            continue
        yield ComparedAim(
            metric.name,
            aim.mean,
            metric.baseline,
            metric.candidate,
            aim.reached(metric.candidate),
            relative(metric.candidate, metric.baseline) if metric.baseline else None,
            aim.published,
            relative(metric.candidate, aim.published),
            aim.improvement,
        )
