"""Defines `Score`, the description of a metric: names, settings it depends on, allowed drop, aim, format of values."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from decimal import Decimal
from typing import Literal

MINUS = "\N{MINUS SIGN}"
"""The minus sign in texts for people. JSON has the ASCII one."""

Form = Literal["score", "percent", "points", "count"]
"""The format of values: three decimals, percent, points of 100 with one decimal, or whole numbers."""

Part = Literal["k", "judge", "weights", "pass_threshold"]
"""A setting of a run on which some metrics depend. A judge's prompt belongs to the judge."""


EXACT = 1e-9
"""A value nearer to its bound than this equals it: means have rounding errors."""


@dataclass(frozen=True)
class Threshold:
    """The allowed drop of a metric: a share of the baseline's value, or an amount of the metric itself."""

    amount: float
    relative: bool = True

    def __str__(self) -> str:
        return f"{self.amount:.4g}" if not self.relative else f"{100 * self.amount:.4g} %"

    def exceeded(self, baseline: float, candidate: float, *, higher_is_better: bool) -> bool:
        """Return True if the drop is larger. A drop exactly at the threshold is not."""
        worse = baseline - candidate if higher_is_better else candidate - baseline
        return worse > self.amount * (abs(baseline) if self.relative else 1) + EXACT


@dataclass(frozen=True)
class Aim:
    """The mean that reasoning should reach, and the published mean of naive single-shot answers."""

    mean: float
    published: float
    higher_is_better: bool = True

    @property
    def improvement(self) -> float:
        """The change from the published baseline to the aim, relative to the baseline: 1.92 is +192 %."""
        return relative(self.mean, self.published)

    def reached(self, measured: float) -> bool:
        """Return True if a mean reaches the aim. If lower is better, the mean must be below it."""
        return measured >= self.mean if self.higher_is_better else measured < self.mean


def relative(value: float, base: float) -> float:
    """Return the change from a non-zero base, relative to the base."""
    return (value - base) / base


@dataclass(frozen=True)
class Score:
    """A number for one question (`name`), and for a run (`metric`, its mean over the measured questions).

    Args:
        name: Name of the score, as in `per_question.parquet`.
        title: Name for people; `{k}` is replaced by k.
        meaning: The definition in one line.
        mean: Name of the mean; `name` if empty.
        depends_on: The settings that two runs must share for their values to be comparable.
        main: True if MLflow's charts show the mean.
        headline: Position among the metrics that are shown first, and for each group; 0 for the others.
        higher_is_better: True if higher values are better.
        binary: True if each question has 1 or 0, so that the mean is a share.
        retrieval: True if only a target that retrieves has it.
        compared: True if runs are compared by it.
        tells_result: True if a changed score means that the question's result changed.
        span: The largest difference of two values; None without a bound.
        max_drop: The drop that the gate allows by default; None has no default rule.
        aim: The aim of the reasoning rubric.
        own: True if it is the user's own.
        gates: True if rules of the gate may name it.
        quantile: For a quantile instead of a mean: the share of the questions that do not exceed it.
        form: The format of its values.
    """

    name: str
    title: str
    meaning: str
    _: KW_ONLY
    mean: str = ""
    depends_on: frozenset[Part] = frozenset()
    main: bool = True
    headline: int = 0
    higher_is_better: bool = True
    binary: bool = False
    retrieval: bool = False
    compared: bool = True
    tells_result: bool = True
    span: float | None = 1.0
    max_drop: Threshold | None = None
    aim: Aim | None = None
    own: bool = False
    gates: bool = True
    quantile: float | None = None
    form: Form = "score"

    @property
    def metric(self) -> str:
        """The name of the mean."""
        return self.mean or self.name

    @property
    def by_group(self) -> bool:
        """True if each domain and difficulty has a mean of it."""
        return self.headline > 0 or self.own

    def course(self, was: float, now: float) -> tuple[str, str, str]:
        """Format two values and their difference, which is that of the two numbers as written."""
        old, new = self._written(was), self._written(now)
        change = self.change(new - old) if old != new else "≈ 0" if abs(now - was) > ROUNDING else "0"
        return self.shown(was), self.shown(now), change

    def _written(self, value: float) -> float:
        """Return the number that the text of `shown` denotes."""
        digits = float(self._digits(abs(value), 0).replace(",", "")) / (100 if self.form == "percent" else 1)
        return -digits if value < 0 else digits

    def shown(self, value: float, more: int = 0) -> str:
        """Format a value or a mean: ``0.713``, ``71.3 %``, ``83.0`` (points of 100), ``1,251`` (tokens).

        `more` is the number of additional decimals.
        """
        digits = self._digits(abs(value), more)
        sign = MINUS if value < 0 and digits.strip("0.,") else ""
        return f"{sign}{digits} %" if self.form == "percent" else f"{sign}{digits}"

    def change(self, value: float, more: int = 0) -> str:
        """Format a difference with its sign: ``−0.053``, ``+3.5 points`` (of a share in percent), ``0``.

        A difference that is not 0 but would be written as 0 is ``≈ 0``. `more` is the number of additional decimals.
        """
        if abs(value) < ROUNDING:
            return "0"
        digits = self._digits(abs(value), more)
        if not digits.strip("0.,"):
            return "≈ 0"
        unit = f" point{'' if Decimal(digits.replace(',', '')) == 1 else 's'}" if self.form == "percent" else ""
        return f"{'+' if value > 0 else MINUS}{digits}{unit}"

    def _digits(self, size: float, more: int) -> str:
        decimals = {"score": 3 if size < 100 else 0, "percent": 1, "points": 1, "count": 0}[self.form] + more
        return f"{100 * size if self.form == 'percent' else size:,.{decimals}f}"


ROUNDING = 1e-12
"""A smaller difference of means is a rounding error."""
