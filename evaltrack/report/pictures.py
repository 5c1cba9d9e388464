"""Pictures of a run on reasoning, as SVG: its dimensions, and whether it claims what it earned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from html import escape

from evaltrack.reasoned import DIMENSIONS
from evaltrack.report.words import metric_title
from evaltrack.table import FlatRow

BANDS = ("none", "below 50 %", "50 to 70 %", "70 to 90 %", "above 90 %")
STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1f2933}.dim{fill:#52606d;font-size:11px}"
    ".bar{fill:#2563eb}.track{fill:#e4e7eb}.bad{fill:#fee2e2}.good{fill:#dcfce7}"
    "rect.paper{fill:#fff}"
)


def dimensions_svg(metrics: Mapping[str, float], counts: Mapping[str, int]) -> str:
    """Each dimension's mean as a bar from 0 to 10."""
    return _svg(560, 70 + 30 * len(DIMENSIONS), "Dimensions, mean of 0 to 10", _bars(metrics, counts))


def _bars(metrics: Mapping[str, float], counts: Mapping[str, int]) -> Iterator[str]:
    for place, name in enumerate(name for name in DIMENSIONS if name in metrics):
        y, value = 50 + 30 * place, metrics[name]
        yield _text(150, y + 15, metric_title(name, 0), anchor="end")
        yield f'<rect class="track" x="160" y="{y}" width="300" height="20" rx="3"/>'
        yield f'<rect class="bar" x="160" y="{y}" width="{30 * value:.1f}" height="20" rx="3"/>'
        yield _text(470, y + 15, f"{value:.2f}")
        yield _text(515, y + 15, f"n {counts[name]}", "dim")


def calibration_svg(rows: Iterable[FlatRow]) -> str:
    """How many responses claimed and earned each band of confidence; above the diagonal more is claimed than earned."""
    found = Counter((row["claimed_band"], row["earned_band"]) for row in rows if row["claimed_band"] is not None)
    return _svg(560, 370, f"Confidence claimed and earned, {sum(found.values())} responses", _grid(found))


def _grid(found: Counter[tuple[int, int]]) -> Iterator[str]:
    yield _text(330, 345, "band that the process earned", anchor="middle")
    yield _text(20, 50, "claimed")
    for claimed in range(4, 0, -1):
        y = 60 + 55 * (4 - claimed)
        yield _text(120, y + 32, BANDS[claimed], anchor="end")
        for earned in range(5):
            x = 130 + 80 * earned
            kind = "bad" if claimed > earned else "good"
            yield f'<rect class="{kind}" x="{x}" y="{y}" width="76" height="51" rx="4"/>'
            if count := found[claimed, earned]:
                yield _text(x + 38, y + 32, str(count), anchor="middle")
    for earned in range(5):
        yield _text(168 + 80 * earned, 300, BANDS[earned], "dim", anchor="middle")
    yield _text(168, 318, "red: claims more than it earned", "dim", anchor="start")


def _svg(width: int, height: int, title: str, parts: Iterable[str]) -> str:
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    lines = [f'{head} role="img" aria-label="{escape(title)}"><style>{STYLE}</style>']
    lines += ['<rect class="paper" width="100%" height="100%"/>', _text(20, 26, title, weight=600), *parts, "</svg>"]
    return "\n".join(lines) + "\n"


def _text(x: int, y: int, text: str, kind: str = "", *, anchor: str = "start", weight: int = 400) -> str:
    named = f' class="{kind}"' if kind else ""
    return f'<text{named} x="{x}" y="{y}" text-anchor="{anchor}" font-weight="{weight}">{escape(text)}</text>'
