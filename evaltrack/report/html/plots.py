"""Places the changes of a comparison's metrics, with intervals and limits, on a shared axis for the templates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import floor, isfinite, log10
from typing import Any

from evaltrack.compare.comparison import Comparison, MetricDelta
from evaltrack.metrics.catalogue import metric_form
from evaltrack.report.comparison_words import Way, metric_lines

WIDTH, MARGIN = 208, 8
"""Width and margin of an axis, in pixels."""


@dataclass(frozen=True)
class AxisMark:
    """A difference on an axis: its value, the ends of its interval, and its limit, in points of 100.

    `shown`: the difference is significant, and its mark is filled.
    """

    value: float
    low: float
    high: float
    limit: float | None
    way: Way
    shown: bool


def axis_place(value: float, reach: float) -> float:
    """Return the position in pixels of a number of points on an axis from -reach to reach, clipped to the axis."""
    return round(MARGIN + (WIDTH - 2 * MARGIN) * (min(max(value / reach, -1.0), 1.0) + 1) / 2, 1)


STEPS = (1, 2, 5, 10)
"""Ends of an axis, times a power of ten."""

SMALLEST = 2.0
"""The least end of an axis in points, so that a tiny difference does not look large."""


def axis_reach(metrics: Iterable[MetricDelta]) -> float:
    """Return the points that hold all differences, intervals and limits: 1, 2, 5 or 10 times a power of ten."""
    ends = [SMALLEST]
    for metric in metrics:
        if (mark := _mark(metric, "same")) is not None:
            ends += [abs(mark.value), abs(mark.low), abs(mark.high), abs(mark.limit or 0.0)]
    power = 10.0 ** floor(log10(max(ends)))
    return next(step * power for step in STEPS if step * power >= max(ends) - 1e-9)


def metric_rows(comparison: Comparison, metrics: Sequence[MetricDelta]) -> list[dict[str, Any]]:
    """Return the line of each metric with its mark on the axis."""
    return [
        vars(line) | {"mark": _mark(line.metric, line.way) if line.metric.shows_change else None}
        for line in metric_lines(comparison, metrics)
    ]


def moved_name(metric: MetricDelta) -> str:
    """Return the score whose questions the metric's link filters; empty for the pass rate, which filters flips."""
    return "" if metric.name == "pass_rate" else metric_form(metric.name).name


def _mark(metric: MetricDelta, way: Way) -> AxisMark | None:
    """Return the difference in points of 100; None for unbounded metrics, such as tokens or user-defined scores."""
    span = metric_form(metric.name).span
    if not span:
        return None
    scale = 100 / span
    low, high = metric.interval or (metric.delta, metric.delta)
    if not all(map(isfinite, (metric.delta, low, high))):
        return None
    limit = None
    if metric.threshold is not None:
        amount = metric.threshold.amount * (abs(metric.baseline) if metric.threshold.relative else 1.0)
        limit = scale * (-amount if metric.higher_is_better else amount)
    excludes_0 = metric.interval is not None and (low > 0 or high < 0)
    return AxisMark(scale * metric.delta, scale * low, scale * high, limit, way, excludes_0)
