"""What a question cost in tokens, against how well it went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from math import ceil, floor, log10
from random import Random
from typing import Any

from evaltrack.records.amount import count
from evaltrack.report.pictures.measure import Measure
from evaltrack.report.pictures.svg import drawing, line, words

DRAWN = 2000
"""Points drawn at most; of more, a uniform sample (Vitter 1985, algorithm R)."""

SEED = 7
LEFT, RIGHT, TOP, BOTTOM = 70, 610, 80, 350
TICKS = 7

OUTCOMES = {True: ("passed", "passed"), False: ("failed", "did not pass"), None: ("open", "neither")}
"""By `passed`: class and name."""


class TokenPoints:
    """A point for each question with tokens and a score; of many, a sample that does not grow with them."""

    def __init__(self, measure: Measure | None, k: int) -> None:
        self._measure, self._k = measure, k
        self._sample: list[tuple[float, float, bool | None]] = []
        self._outcomes: Counter[bool | None] = Counter()
        self._rows = self._zero = 0
        self._least, self._most = float("inf"), 0.0
        self._random = Random(SEED)  # noqa: S311 - a sample, no secret

    def add(self, row: Mapping[str, Any]) -> None:
        """Take one row, as columns."""
        self._rows += 1
        score = row[self._measure.column] if self._measure else None
        tokens = row["num_tokens"]
        if score is None or tokens is None:
            return
        if tokens <= 0:
            self._zero += 1
            return
        self._least, self._most = min(self._least, tokens), max(self._most, tokens)
        self._outcomes[row["passed"]] += 1
        point = (tokens, score, row["passed"])
        if len(self._sample) < DRAWN:
            self._sample.append(point)
        elif (place := self._random.randrange(self._outcomes.total())) < DRAWN:
            self._sample[place] = point

    def svg(self) -> str:
        """The points; empty where no question has both tokens and a score."""
        if self._measure is None or not self._sample:
            return ""
        total, title = self._outcomes.total(), self._measure.title(self._k)
        return drawing(
            640,
            BOTTOM + 76,
            f"Tokens against {title}, {count(total, 'question')}",
            [*self._legend(), *self._axes(self._measure), *self._points(self._measure.top), *self._notes(total)],
        )

    def _legend(self) -> Iterator[str]:
        for place, (passed, (_, name)) in enumerate(OUTCOMES.items()):
            x = LEFT + 170 * place
            yield _shape(x, 52, passed)
            yield words(x + 12, 56, f"{name}: {self._outcomes[passed]:,}")

    def _axes(self, measure: Measure) -> Iterator[str]:
        for step in range(6):
            value = measure.top * step / 5
            y = _height(value / measure.top)
            yield line(LEFT, y, RIGHT, y, "grid")
            yield words(LEFT - 12, y + 4, f"{value:g}", "dim", anchor="end")
        yield line(LEFT, BOTTOM + 8, RIGHT, BOTTOM + 8, "axis")
        for tick in log_ticks(self._least, self._most):
            x = self._x(tick)
            yield line(x, BOTTOM + 8, x, BOTTOM + 13, "axis")
            yield words(x, BOTTOM + 26, _tokens(tick), "dim", anchor="middle")
        yield words(20, TOP - 4, measure.title(self._k), "dim")
        yield words(RIGHT, BOTTOM + 42, "tokens, logarithmic", "dim", anchor="end")

    def _x(self, tokens: float) -> float:
        low, high = log_range(self._least, self._most)
        return LEFT + (RIGHT - LEFT) * (log10(tokens) - log10(low)) / (log10(high) - log10(low))

    def _points(self, top: int) -> Iterator[str]:
        """What did not pass lies on top, so that it is seen."""
        for outcome in OUTCOMES:
            for tokens, score, passed in self._sample:
                if passed is outcome:
                    yield _shape(self._x(tokens), _height(score / top), passed)

    def _notes(self, total: int) -> Iterator[str]:
        sample_words = (
            "all of them drawn" if total <= DRAWN else f"{DRAWN:,} of them drawn, chosen at random (seed {SEED})"
        )
        missing = self._rows - total - self._zero
        note = f"{sample_words}; not in the picture: {missing:,} of {self._rows:,} without tokens or score"
        yield words(20, BOTTOM + 60, note + (f", {self._zero:,} with 0 tokens" if self._zero else ""), "dim")


def log_range(least: float, most: float) -> tuple[float, float]:
    """The nearest 1, 2 or 5 times a power of ten at or below `least`, and above `most`."""
    ends = _round_numbers(floor(log10(least)) - 1, ceil(log10(most)) + 1)
    low = max(end for end in ends if end <= least)
    return low, min(end for end in ends if end > most)


def log_ticks(least: float, most: float) -> list[float]:
    """At most `TICKS` round numbers on a logarithmic axis, evenly chosen."""
    low, high = log_range(least, most)
    ticks = [tick for tick in _round_numbers(floor(log10(low)), ceil(log10(high))) if low <= tick <= high]
    if len(ticks) > TICKS:
        powers = range(ceil(log10(low)), floor(log10(high)) + 1)
        ticks = [10.0**power for power in powers[:: ceil(len(powers) / TICKS)]]
    return ticks


def _round_numbers(first: int, last: int) -> list[float]:
    return [factor * 10.0**power for power in range(first, last + 1) for factor in (1, 2, 5)]


def _tokens(value: float) -> str:
    return f"{value:,.15g}" if value < 1e6 else f"{value:.0e}".replace("e+0", "e").replace("e+", "e")


def _height(share: float) -> float:
    return BOTTOM - (BOTTOM - TOP - 10) * share


def _shape(x: float, y: float, passed: bool | None) -> str:
    """A circle that passed, a triangle that did not, an empty square that is neither."""
    kind = OUTCOMES[passed][0]
    if passed is None:
        return f'<rect class="{kind}" x="{x - 3.5:.1f}" y="{y - 3.5:.1f}" width="7" height="7"/>'
    if passed:
        return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
    return f'<path class="{kind}" d="M{x - 5:.1f} {y + 4:.1f}h10l-5 -9z"/>'
