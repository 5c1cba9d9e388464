"""The metrics of a comparison as rows on one axis: both values, the difference with its interval, the limit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import floor, isfinite, log10
from typing import Any

from evaltrack.compare.comparison import Comparison, MetricDelta
from evaltrack.compare.evidence import differs
from evaltrack.metrics.catalogue import BY_METRIC
from evaltrack.report.comparison.words import both_words, delta_cell, interval_words
from evaltrack.report.html.plots import AxisMark, Way, axis_plot
from evaltrack.report.words import metric_course, metric_title

STEPS = (1, 2, 5, 10)
"""What an axis may reach, times a power of ten."""

SMALLEST = 2.0
"""Points that an axis reaches at least, so that a difference of nothing does not look like one."""


def way_of(comparison: Comparison, metric: MetricDelta) -> Way:
    """Whether it got better or worse, as far as that may be said; of an unknown verdict, or of a part, neither."""
    if not metric.delta or not metric.shows_change or (comparison.verdict == "unknown" and not metric.regressed):
        return "same"
    return "better" if (metric.delta > 0) == metric.higher_is_better else "worse"


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


def metric_rows(comparison: Comparison, metrics: Sequence[MetricDelta], reach: float) -> list[dict[str, Any]]:
    """One row for each metric in words, with its plot from -reach to reach points.

    By `moved` its better and worse questions are filtered; `on` says where the means are not over all questions.
    """
    return [_row(comparison, metric, reach) for metric in metrics]


def _row(comparison: Comparison, metric: MetricDelta, reach: float) -> dict[str, Any]:
    way = way_of(comparison, metric)
    mark = _mark(metric, way) if metric.shows_change else None
    was, now, _ = metric_course(metric.name, metric.baseline, metric.candidate)
    name = BY_METRIC[metric.name].name if metric.name in BY_METRIC else metric.name
    return {
        "title": metric_title(metric.name, comparison.candidate.signature.k),
        "was": was,
        "now": now,
        "change": delta_cell(metric),
        "interval": interval_words(metric),
        "way": way,
        "plot": axis_plot(mark, reach, _label(metric)) if mark else "",
        "better": f"{metric.wins:,} better" if metric.wins else "",
        "worse": f"{metric.losses:,} worse" if metric.losses else "",
        "moved": "" if metric.name == "pass_rate" else name,
        "on": both_words(metric) if metric.partial or comparison.verdict == "unknown" else "",
        "n": f"{metric.n:,}",
        "regressed": metric.regressed,
    }


def _label(metric: MetricDelta) -> str:
    """What the plot shows, for who does not see it."""
    shown = "shown to differ" if differs(metric) else "not shown to differ"
    interval = f", 95 % interval {interval_words(metric)}" if metric.interval else ""
    return f"{delta_cell(metric)}{interval}, {shown}"


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
    return AxisMark(scale * metric.delta, scale * low, scale * high, limit, way, differs(metric))
