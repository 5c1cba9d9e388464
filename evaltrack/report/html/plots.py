"""The metrics of a comparison as rows on one axis. The templates draw them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import floor, isfinite, log10
from typing import Any

from evaltrack.compare.comparison import Comparison, MetricDelta
from evaltrack.metrics.catalogue import BY_METRIC
from evaltrack.report.comparison_words import MetricLine, Way, metric_lines

WIDTH, MARGIN = 208, 8
"""Of an axis, in pixels."""


@dataclass(frozen=True)
class AxisMark:
    """A difference on an axis: its value, the ends of its interval and its limit in points of 100, and how it is shown.

    `shown`: it is shown to be a difference, and its mark is filled.
    """

    value: float
    low: float
    high: float
    limit: float | None
    way: Way
    shown: bool


def axis_place(value: float, reach: float) -> float:
    """Where a number of points stands on an axis from -reach to reach, never outside of it."""
    return round(MARGIN + (WIDTH - 2 * MARGIN) * (min(max(value / reach, -1.0), 1.0) + 1) / 2, 1)


STEPS = (1, 2, 5, 10)
"""What an axis may reach, times a power of ten."""

SMALLEST = 2.0
"""Points that an axis reaches at least, so that a difference of nothing does not look like one."""


def axis_reach(metrics: Iterable[MetricDelta]) -> float:
    """How many points an axis must reach to hold these differences, intervals and limits: 1, 2 or 5 times 10^n."""
    ends = [SMALLEST]
    for metric in metrics:
        if (mark := _mark(metric, "same")) is not None:
            ends += [abs(mark.value), abs(mark.low), abs(mark.high), abs(mark.limit or 0.0)]
    power = 10.0 ** floor(log10(max(ends)))
    return next(step * power for step in STEPS if step * power >= max(ends) - 1e-9)


def axis_legend(metrics: Iterable[MetricDelta]) -> str:
    """What the marks mean, of those that are drawn; empty where none is."""
    drawn = [(metric, mark) for metric in metrics if metric.shows_change and (mark := _mark(metric, "same"))]
    marks = {
        "Line: 95 % interval": any(metric.interval for metric, _ in drawn),
        "filled: shown to differ": any(mark.shown for _, mark in drawn),
        "hollow: not shown to differ": any(not mark.shown for _, mark in drawn),
        "dashed: the limit of the gate": any(mark.limit is not None for _, mark in drawn),
    }
    words = "; ".join(words for words, is_drawn in marks.items() if is_drawn)
    return f"Axis in points of 100. {words[:1].upper()}{words[1:]}." if words else ""


def metric_rows(comparison: Comparison, metrics: Sequence[MetricDelta]) -> list[dict[str, Any]]:
    """The line of each metric, with its mark on the axis; by `moved` its better and worse questions are filtered."""
    return [
        vars(line) | {"mark": _mark(line.metric, line.way) if line.metric.shows_change else None, "label": _label(line)}
        for line in metric_lines(comparison, metrics)
    ]


def moved_name(metric: MetricDelta) -> str:
    """The score whose questions a link of its mean filters; of the pass rate those that flipped are meant."""
    name = BY_METRIC[metric.name].name if metric.name in BY_METRIC else metric.name
    return "" if metric.name == "pass_rate" else name


def _label(line: MetricLine) -> str:
    """What the plot shows, for who does not see it."""
    shown = "shown to differ" if _differs(line.metric) else "not shown to differ"
    interval = f", 95 % interval {line.interval}" if line.metric.interval else ""
    return f"{line.change}{interval}, {shown}"


def _differs(metric: MetricDelta) -> bool:
    """Whether the 95 % interval of the difference leaves out 0."""
    return metric.interval is not None and (metric.interval[0] > 0 or metric.interval[1] < 0)


def _mark(metric: MetricDelta, way: Way) -> AxisMark | None:
    """The difference in points of 100; None for what has no bound, such as tokens or a score of one's own."""
    span = BY_METRIC[metric.name].span if metric.name in BY_METRIC else None
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
    return AxisMark(scale * metric.delta, scale * low, scale * high, limit, way, _differs(metric))
