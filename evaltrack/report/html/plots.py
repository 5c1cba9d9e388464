"""Small plots that stand in a line: a difference on an axis, what broke and was fixed, a metric from run to run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

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
    parts.append(_mark(_place(mark.value, reach), middle, mark.way, filled=mark.shown))
    return "".join([*parts, "</svg>"])


def _mark(x: float, y: float, kind: Way, *, filled: bool) -> str:
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
