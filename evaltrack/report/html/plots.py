"""Small plots that stand in a line of text: a difference with its interval, and how a metric went from run to run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from typing import Literal

from evaltrack.compare.comparison import MetricDelta

Way = Literal["better", "worse", "same"]

WIDTH, HEIGHT, MARGIN = 200, 26, 8


def reach(metrics: Sequence[MetricDelta]) -> float:
    """The largest difference that the plots of these metrics must hold, so that they share one axis."""
    ends = [abs(end) for metric in metrics for end in (metric.delta, *(metric.interval or ()))]
    return max(ends, default=0.0) or 1.0


def interval_plot(metric: MetricDelta, most: float, way: Way) -> str:
    """The difference as a mark for its way, its 95 % interval as a line, on an axis from `-most` to `most`."""

    def place(value: float) -> float:
        return MARGIN + (WIDTH - 2 * MARGIN) * (value / most + 1) / 2

    low, high = metric.interval or (metric.delta, metric.delta)
    words = f"{metric.delta:+.3f}, 95 % interval {low:+.3f} to {high:+.3f}"
    middle = HEIGHT / 2
    parts = [
        f'<svg class="plot {way}" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"',
        f' aria-label="{escape(words)}"><line class="grid-line" x1="0" x2="{WIDTH}" y1="{middle}" y2="{middle}"/>',
        f'<line class="axis" x1="{place(0):.1f}" x2="{place(0):.1f}" y1="2" y2="{HEIGHT - 2}"/>',
        f'<line class="range" x1="{place(low):.1f}" x2="{place(high):.1f}" y1="{middle}" y2="{middle}"/>',
        _mark(place(metric.delta), middle, way),
        "</svg>",
    ]
    return "".join(parts)


def _mark(x: float, y: float, kind: Way) -> str:
    """A triangle that points down for worse and up for better, a dot for the same: the shape says it without colour."""
    if kind == "same":
        return f'<circle class="dot" cx="{x:.1f}" cy="{y}" r="4.5"/>'
    way = 6 if kind == "worse" else -6
    return f'<path class="dot" d="M{x - 6:.1f} {y - way / 2 - 1:.1f}h12l-6 {way * 1.5:.1f}z"/>'


def sparkline(values: Sequence[float | None], label: str, width: int = 160, height: int = 34) -> str:
    """How a metric went, oldest first; a gap where it was not measured."""
    measured = [value for value in values if value is not None]
    if not measured:
        return ""
    low, high = min(measured), max(measured)
    value_range = (high - low) or 1.0
    step = (width - 10) / max(len(values) - 1, 1)

    def point(place: int, value: float) -> tuple[float, float]:
        at = (value - low) / value_range if high > low else 0.5
        return 5 + step * place, height - 5 - (height - 10) * at

    points = [None if value is None else point(place, value) for place, value in enumerate(values)]
    head = f'<svg class="spark" width="{width}" height="{height}" viewBox="0 0 {width} {height}" role="img"'
    last = max(place for place, each in enumerate(points) if each is not None)
    dots = "".join(_dot(each, last=place == last) for place, each in enumerate(points) if each is not None)
    return f'{head} aria-label="{escape(label)}"><path d="{"".join(_path(points))}"/>{dots}</svg>'


def _dot(point: tuple[float, float], *, last: bool) -> str:
    x, y = point
    kind, size = (' class="last"', 3.2) if last else ("", 1.6)
    return f'<circle{kind} cx="{x:.1f}" cy="{y:.1f}" r="{size}"/>'


def _path(points: Sequence[tuple[float, float] | None]) -> Iterator[str]:
    down = False
    for point in points:
        if point is not None:
            yield f"{'L' if down else 'M'}{point[0]:.1f} {point[1]:.1f}"
        down = point is not None
