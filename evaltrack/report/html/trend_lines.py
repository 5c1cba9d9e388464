"""A metric from run to run as a line whose points name their run and lead to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT, MARGIN = 420, 58, 9


@dataclass(frozen=True)
class TrendPoint:
    """A run on a line: its value, what is said of it (any text), and where it leads, if anywhere (a safe address).

    `at` is when it started, in milliseconds since 1970; `other`: it is of another kind, and the line passes it by.
    """

    value: float
    words: str
    link: str | None = None
    at: int = 0
    other: bool = False


def trend_line(points: Sequence[TrendPoint], label: str) -> str:
    """The line, oldest first; each point is large enough to be hit, and named while the pointer is on it."""
    if not points:
        return ""
    low, high = min(each.value for each in points), max(each.value for each in points)
    step = (WIDTH - 2 * MARGIN) / max(len(points) - 1, 1)
    places = [
        (MARGIN + step * at, HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * _share(each.value, low, high))
        for at, each in enumerate(points)
    ]
    own = (place for point, place in zip(points, places, strict=True) if not point.other)
    path = "L".join(f"{x:.1f} {y:.1f}" for x, y in own)
    dots = "".join(
        _dot(point, place, min(step / 2, 12), last=point is points[-1])
        for point, place in zip(points, places, strict=True)
    )
    head = f'<svg class="trend" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="group"'
    return f'{head} aria-label="{escape(label)}"><path d="M{path}"/>{dots}</svg>'


def _share(value: float, low: float, high: float) -> float:
    return (value - low) / (high - low) if high > low else 0.5


def _dot(point: TrendPoint, place: tuple[float, float], reach: float, *, last: bool) -> str:
    x, y = place
    size = 4 if last else 3
    kind = ' class="last"' if last else ' class="other"' if point.other else ""
    shape = (
        f'<rect class="reach" x="{x - reach:.1f}" y="0" width="{2 * reach:.1f}" height="{HEIGHT}"/>'
        f'<circle{kind} cx="{x:.1f}" cy="{y:.1f}" r="{size}"/><title>{escape(point.words)}</title>'
    )
    if point.link is None:
        return f'<g data-at="{point.at}">{shape}</g>'
    address = f'data-at="{point.at}" href="{escape(point.link)}" rel="noopener noreferrer"'
    return f'<a {address} tabindex="-1">{shape}</a>'  # the runs are listed with their links, too
