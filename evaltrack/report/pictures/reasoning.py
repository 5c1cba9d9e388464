"""Pictures of a run on reasoning: its dimensions, and whether it claims what it earned."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from evaltrack.metrics.reasoning import DIMENSIONS
from evaltrack.records.amount import count
from evaltrack.report.pictures.svg import drawing, words
from evaltrack.report.words import metric_title

BANDS = ("none", "below 50 %", "50 to 70 %", "70 to 90 %", "above 90 %")


def dimensions_svg(metrics: Mapping[str, float], counts: Mapping[str, int]) -> str:
    """Each dimension's mean as a bar from 0 to 10."""
    return drawing(560, 70 + 30 * len(DIMENSIONS), "Dimensions, mean of 0 to 10", _bars(metrics, counts))


def _bars(metrics: Mapping[str, float], counts: Mapping[str, int]) -> Iterator[str]:
    for place, name in enumerate(name for name in DIMENSIONS if name in metrics):
        y, value = 50 + 30 * place, metrics[name]
        yield words(150, y + 15, metric_title(name, 0), anchor="end")
        yield f'<rect class="track" x="160" y="{y}" width="300" height="20" rx="3"/>'
        yield f'<rect class="bar" x="160" y="{y}" width="{30 * value:.1f}" height="20" rx="3"/>'
        yield words(470, y + 15, f"{value:.2f}")
        yield words(505, y + 15, f"n {counts[name]:,}", "dim")


class Calibration:
    """How many responses claimed and earned each band of confidence; above the diagonal more is claimed than earned."""

    def __init__(self) -> None:
        self._found: Counter[tuple[int, int]] = Counter()
        self._rows = 0

    def add(self, row: Mapping[str, Any]) -> None:
        """Count one row, as columns."""
        self._rows += 1
        claimed, earned = row["claimed_band"], row["earned_band"]
        if claimed is not None and earned is not None:
            self._found[claimed, earned] += 1

    def svg(self) -> str:
        """The grid, also where nothing was claimed."""
        claimed = sum(self._found.values())
        return drawing(560, 370, f"Confidence claimed and earned, {count(claimed, 'response')}", self._grid(claimed))

    def _grid(self, total: int) -> Iterator[str]:
        yield words(330, 320, "band that the process earned", anchor="middle")
        yield words(20, 50, "claimed")
        for claimed in range(4, 0, -1):
            y = 60 + 55 * (4 - claimed)
            yield words(120, y + 32, BANDS[claimed], anchor="end")
            for earned in range(5):
                x = 130 + 80 * earned
                kind = "bad" if claimed > earned else "good"
                yield f'<rect class="{kind}" x="{x}" y="{y}" width="76" height="51" rx="4"/>'
                if count := self._found[claimed, earned]:
                    yield words(x + 38, y + 32, f"{count:,}", anchor="middle")
        for earned in range(5):
            yield words(168 + 80 * earned, 300, BANDS[earned], "dim", anchor="middle")
        yield words(20, 344, "orange: claims more than it earned", "dim")
        yield words(20, 360, f"not in the picture: {self._rows - total:,} of {self._rows:,} claim nothing", "dim")
