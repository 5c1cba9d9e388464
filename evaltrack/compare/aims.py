"""What reasoning should reach over a naive single-shot answer (seed 002, section 7). Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evaltrack.compare.comparison import MetricDelta

AIMS = {"hypotheses": (3.5, True), "shifts": (2.8, True), "coupling_violation_rate": (0.10, False)}
"""Metric -> the value to reach, and whether higher is better; the violations must stay below theirs."""


@dataclass(frozen=True)
class Aim:
    """One target of seed 002: `improvement` is the change relative to the baseline (None where that is 0)."""

    metric: str
    aim: float
    baseline: float
    candidate: float
    reached: bool
    improvement: float | None


def aims_of(metrics: Iterable[MetricDelta]) -> Iterator[Aim]:
    """Each target whose metric both sides measured."""
    for metric in metrics:
        if metric.name not in AIMS:
            continue
        aim, higher = AIMS[metric.name]
        reached = metric.candidate >= aim if higher else metric.candidate < aim
        improvement = metric.delta / metric.baseline if metric.baseline else None
        yield Aim(metric.name, aim, metric.baseline, metric.candidate, reached, improvement)
