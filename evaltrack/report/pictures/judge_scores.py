"""How the judge's scores are spread, and where passing begins."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Any

from evaltrack.records.amount import count
from evaltrack.report.pictures.measure import Measure
from evaltrack.report.pictures.svg import bar, drawing, left_out, line, words

BINS = 10
LEFT, BOTTOM, WIDTH, HEIGHT = 40, 270, 560, 190


class JudgeScores:
    """The scores of all questions that were judged, in ten bins of equal width; a score on an edge is in the upper."""

    def __init__(self, measure: Measure | None, threshold: float, *, panel: bool) -> None:
        self._measure, self._threshold, self._panel = measure, threshold, panel
        self._found = [0] * BINS
        self._rows = self._below = 0

    def add(self, row: Mapping[str, Any]) -> None:
        """Count one row, as columns."""
        self._rows += 1
        score = row[self._measure.column] if self._measure else None
        if score is None or self._measure is None:
            return
        edges = [self._measure.top * edge / BINS for edge in range(1, BINS)]
        self._found[bisect_right(edges, score)] += 1
        self._below += score < self._threshold

    def svg(self) -> str:
        """The histogram; empty where nothing was judged."""
        judged = sum(self._found)
        if self._measure is None or not judged:
            return ""
        of = ", mean of the panel" if self._panel else ""
        title = f"{self._measure.title(0)}{of}, {count(judged, 'question')}"
        at_least = f"{judged - self._below:,} at {self._threshold:g} or above, {self._below:,} below"
        parts = [
            *self._bars(self._measure.top),
            *self._mark(self._threshold / self._measure.top),
            *self._counts(),
            words(20, BOTTOM + 42, at_least, "dim"),
            words(20, BOTTOM + 58, left_out(self._rows - judged, self._rows, "no score of a judge"), "dim"),
        ]
        return drawing(640, BOTTOM + 72, title, parts)

    def _bars(self, top: int) -> Iterator[str]:
        step = WIDTH / BINS
        for place, height in enumerate(self._heights()):
            yield bar(LEFT + step * place + 3, BOTTOM - height, step - 6, height)
        yield line(LEFT, BOTTOM, LEFT + WIDTH, BOTTOM, "axis")
        for edge in range(BINS + 1):
            yield words(LEFT + step * edge, BOTTOM + 18, f"{top * edge / BINS:g}", "dim", anchor="middle")

    def _counts(self) -> Iterator[str]:
        for place, (number, height) in enumerate(zip(self._found, self._heights(), strict=True)):
            if number:
                x = LEFT + WIDTH / BINS * (place + 0.5)
                yield words(x, BOTTOM - height - 5, f"{number:,}", "over", anchor="middle")

    def _heights(self) -> list[float]:
        return [HEIGHT * count / max(self._found) for count in self._found]

    def _mark(self, share: float) -> Iterator[str]:
        """The threshold as a dashed line, its name on the side where there is room."""
        x, side = LEFT + WIDTH * share, -6 if share > 0.5 else 6
        yield line(x, 44, x, BOTTOM, "halo")
        yield line(x, 44, x, BOTTOM, "limit")
        yield words(x + side, 54, f"passes from {self._threshold:g}", anchor="end" if side < 0 else "start")
