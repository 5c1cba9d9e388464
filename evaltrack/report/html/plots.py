"""The metrics of a comparison as rows on one axis, and small plots that stand in a line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from math import floor, isfinite, log10
from typing import Any, Literal

from evaltrack.compare.comparison import Comparison, MetricDelta
from evaltrack.metrics.catalogue import BY_METRIC
from evaltrack.report.comparison.words import both_words, delta_cell, interval_words
from evaltrack.report.words import metric_course, metric_title

Way = Literal["better", "worse", "same"]

WIDTH, HEIGHT, MARGIN = 208, 26, 8


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


def _place(value: float, reach: float) -> float:
    """Where a number of points stands, never outside of the axis."""
    return MARGIN + (WIDTH - 2 * MARGIN) * (min(max(value / reach, -1.0), 1.0) + 1) / 2


def axis_head(reach: float) -> str:
    """The numbers of the ticks, at -reach, 0 and reach; the words beside them say that they are points."""
    parts = [f'<svg class="plot ticks" width="{WIDTH}" height="16" viewBox="0 0 {WIDTH} 16" aria-hidden="true">']
    for value, anchor in ((-reach, "start"), (0.0, "middle"), (reach, "end")):
        x = {"start": 0.0, "middle": WIDTH / 2, "end": float(WIDTH)}[anchor]
        number = f"{value:+g}".replace("-", "\N{MINUS SIGN}") if value else "0"
        parts.append(f'<text x="{x:g}" y="12" text-anchor="{anchor}">{number}</text>')
    return "".join([*parts, "</svg>"])


def axis_plot(mark: AxisMark, reach: float, label: str) -> str:
    """The difference on an axis from -reach to reach points: filled where it is shown, hollow where it is not.

    The interval is a line, the limit a dashed one; a triangle points down for worse and up for better.
    """
    middle = HEIGHT / 2
    parts = [
        f'<svg class="plot {mark.way}" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"',
        f' aria-label="{escape(label)}"><line class="grid-line" x1="0" x2="{WIDTH}" y1="{middle}" y2="{middle}"/>',
    ]
    for tick in (-reach, -reach / 2, reach / 2, reach):
        x = _place(tick, reach)
        parts.append(f'<line class="tick" x1="{x:.1f}" x2="{x:.1f}" y1="{middle - 4}" y2="{middle + 4}"/>')
    zero = _place(0, reach)
    parts.append(f'<line class="axis" x1="{zero:.1f}" x2="{zero:.1f}" y1="1" y2="{HEIGHT - 1}"/>')
    if mark.limit is not None:
        x = _place(mark.limit, reach)
        parts.append(f'<line class="limit" x1="{x:.1f}" x2="{x:.1f}" y1="1" y2="{HEIGHT - 1}"/>')
    low, high = _place(mark.low, reach), _place(mark.high, reach)
    parts.append(f'<line class="range" x1="{low:.1f}" x2="{high:.1f}" y1="{middle}" y2="{middle}"/>')
    parts.append(_shape(_place(mark.value, reach), middle, mark.way, filled=mark.shown))
    return "".join([*parts, "</svg>"])


def _shape(x: float, y: float, kind: Way, *, filled: bool) -> str:
    """A triangle for worse and better, a dot for the same: the shape says it without colour."""
    name = "dot" if filled else "dot hollow"
    if kind == "same":
        return f'<circle class="{name}" cx="{x:.1f}" cy="{y}" r="4.5"/>'
    way = 6 if kind == "worse" else -6
    return f'<path class="{name}" d="M{x - 6:.1f} {y - way / 2 - 1:.1f}h12l-6 {way * 1.5:.1f}z"/>'


def flip_bars(broke: int, fixed: int, most: int) -> str:
    """How many of a group broke, to the left, and were fixed, to the right; `most` fills a side."""
    middle, room = WIDTH / 2, WIDTH / 2 - 56
    left, right = (room * number / max(most, 1) for number in (broke, fixed))
    parts = [
        f'<svg class="plot flips" width="{WIDTH}" height="20" viewBox="0 0 {WIDTH} 20" role="img"',
        f' aria-label="{broke:,} broke, {fixed:,} fixed">',
    ]
    if broke:
        parts.append(f'<rect class="broke" x="{middle - left:.1f}" y="3" width="{left:.1f}" height="14"/>')
        parts.append(f'<text x="{middle - left - 4:.1f}" y="14" text-anchor="end">{broke:,} broke</text>')
    if fixed:
        parts.append(f'<rect class="fixed" x="{middle:.1f}" y="3" width="{right:.1f}" height="14"/>')
        parts.append(f'<text x="{middle + right + 4:.1f}" y="14" text-anchor="start">{fixed:,} fixed</text>')
    parts.append(f'<line class="axis" x1="{middle:g}" x2="{middle:g}" y1="0" y2="20"/></svg>')
    return "".join(parts)


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
    shown = "shown to differ" if _differs(metric) else "not shown to differ"
    interval = f", 95 % interval {interval_words(metric)}" if metric.interval else ""
    return f"{delta_cell(metric)}{interval}, {shown}"


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
