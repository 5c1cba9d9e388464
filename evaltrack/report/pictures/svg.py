"""What every picture is drawn with: SVG that needs no font, style sheet or script from elsewhere."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from html import escape

from evaltrack.records.amount import count
from evaltrack.report.comparison.words import clip

BLUE, ORANGE, GREY = "#2563eb", "#c2410c", "#52606d"
"""Told apart with any kind of colour vision, each at least 5:1 on white (WCAG 2.2 asks 3:1 of graphics)."""

STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1f2933}.dim{fill:#52606d;font-size:11px}.head{font-weight:600}"
    ".over{paint-order:stroke;stroke:#fff;stroke-width:4px;stroke-linejoin:round}.halo{stroke:#fff;stroke-width:6}"
    f".bar{{fill:{BLUE}}}.track{{fill:#e4e7eb}}.bad{{fill:#ffedd5}}.good{{fill:#dbeafe}}"
    f".miss{{fill:{ORANGE}}}.grid{{stroke:#e4e7eb}}.axis{{stroke:{GREY}}}"
    f".limit{{stroke:{ORANGE};stroke-width:2;stroke-dasharray:5 3}}"
    f".passed{{fill:{BLUE};fill-opacity:.6}}.failed{{fill:{ORANGE};fill-opacity:.7}}"
    f".open{{fill:none;stroke:{GREY};stroke-width:1.5}}"
    "rect.paper{fill:#fff}"
)


def drawing(width: int, height: int, title: str, parts: Iterable[str]) -> str:
    """A whole picture on white paper, `width` by `height` pixels, with its title at the top left."""
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    title_text = escape(clip(title))
    lines = [f'{head} role="img" aria-label="{title_text}"><style>{STYLE}</style>']
    lines += ['<rect class="paper" width="100%" height="100%"/>', words(20, 26, title, "head"), *parts, "</svg>"]
    return "\n".join(lines) + "\n"


def words(x: float, y: float, text: str, kind: str = "", *, anchor: str = "start") -> str:
    """Text as text, also where it is foreign: on one line, bounded, nothing in it that XML or a reader would obey."""
    class_attribute = f' class="{kind}"' if kind else ""
    return f'<text{class_attribute} x="{x:g}" y="{y:g}" text-anchor="{anchor}">{escape(clip(text))}</text>'


def bar(x: float, y: float, width: float, height: float, kind: str = "bar") -> str:
    """A rectangle; sizes in pixels."""
    return f'<rect class="{kind}" x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" rx="2"/>'


def line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    """A straight line."""
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"/>'


def fitted(text: str, columns: int) -> str:
    """Foreign text cut to a number of columns, of which wide letters (East Asian, emoji) take two."""
    line_of_text, width = clip(text, columns), 0
    for place, letter in enumerate(line_of_text):
        width += 0 if unicodedata.combining(letter) else 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        if width > columns:
            return line_of_text[: max(place - 1, 0)] + "…"
    return line_of_text


def left_out(number: int, total: int, why: str) -> str:
    """How many of all questions are not in the picture, and why."""
    return f"not in the picture: {number:,} of {count(total, 'question')} ({why})"
