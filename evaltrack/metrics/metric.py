"""What is known of one metric: how it is called, what shapes it, where it is shown and how it is gated."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from decimal import Decimal
from math import isfinite
from typing import Literal

MINUS = "\N{MINUS SIGN}"
"""The sign of every negative number that people read; JSON has the one of ASCII."""

Form = Literal["score", "percent", "points", "count"]
"""How values are written: three decimals, per cent, points of 100 with one decimal, or whole numbers."""

Part = Literal["k", "judge", "weights", "pass_threshold"]
"""A setting of a run that shapes some metrics and leaves others as they are; a judge's prompt goes with the judge."""


@dataclass(frozen=True)
class Hint:
    """What to look at where a mean is not above `good`, a value that a well-tuned retriever exceeds.

    `of_embeddings` holds more of it for targets that embed texts, which BM25 does not.
    """

    good: float
    causes: tuple[str, ...]
    of_embeddings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tolerance:
    """The drop that the gate allows where no rule is given: a share of the baseline's value, or an amount."""

    drop: float
    relative: bool = True


@dataclass(frozen=True)
class Aim:
    """The mean that reasoning should reach, and the one published for naive single-shot answers."""

    mean: float
    published: float
    higher_is_better: bool = True

    @property
    def improvement(self) -> float:
        """The change from the published baseline to the aim, relative to the baseline: 1.92 is +192 %."""
        return relative(self.mean, self.published)

    def reached(self, measured: float) -> bool:
        """Whether a mean reaches the aim; of what should be low it stays below it."""
        return measured >= self.mean if self.higher_is_better else measured < self.mean


def relative(value: float, base: float) -> float:
    """The change from a base that is not 0, relative to it."""
    return (value - base) / base


@dataclass(frozen=True)
class Score:
    """A number for one question (`name`), and for a run (`metric`, its mean over the questions measured).

    Args:
        name: Of the score, as in `per_question.parquet`.
        metric: Of the mean, as in MLflow but for its section.
        title: For people; `{k}` stands for k.
        meaning: In a line.
        depends_on: The settings without which two runs' values cannot be compared.
        section: Where MLflow's charts show it; the top level if empty.
        headline: Its place among the metrics that are shown first, and for each group; 0 for the others.
        higher_is_better: Which way is better.
        binary: Whether each question has 1 or 0, so that the mean is a share.
        retrieval: Whether only a target that retrieves has it.
        compared: Whether runs are compared by it.
        tells_result: Whether a question whose score changed has another result.
        span: The largest difference of two values; None where there is no bound.
        tolerance: The gate's rule for it, if it has one.
        hint: What to look at where it is low.
        aim: Of the reasoning rubric.
        own: Whether it is the user's own.
        gates: Whether rules of the gate may name it.
        quantile: Of a quantile instead of a mean, which share of the questions do not exceed it.
        form: How its values are written for people.
    """

    name: str
    metric: str
    title: str
    meaning: str
    _: KW_ONLY
    depends_on: frozenset[Part]
    section: str = ""
    headline: int = 0
    higher_is_better: bool = True
    binary: bool = False
    retrieval: bool = False
    compared: bool = True
    tells_result: bool = True
    span: float | None = 1.0
    tolerance: Tolerance | None = None
    hint: Hint | None = None
    aim: Aim | None = None
    own: bool = False
    gates: bool = True
    quantile: float | None = None
    form: Form = "score"

    @property
    def by_group(self) -> bool:
        """Whether each domain and difficulty has a mean of it."""
        return self.headline > 0 or self.own

    def decimals(self, was: float, now: float) -> int:
        """How many more decimals it takes for two values and their difference to agree; none for large values."""
        small = self.form != "score" or max(abs(was), abs(now)) < 100
        return next((more for more in MORE if self._agree(was, now, more)), MORE[-1]) if small else 0

    def course(self, was: float, now: float, least: int = 0) -> tuple[str, str, str]:
        """Two values and their difference, all with as many decimals as it takes for the three to agree.

        `least` is how many more decimals they have at least.

        As in ``79.05 %``, ``78.10 %`` and ``−0.95 points``, where one decimal would say ``79.0``, ``78.1``, ``−1.0``.
        Some never do (0.80555…, 0.68333…): the difference is then that of the values with the most decimals.
        """
        more = next((more for more in MORE[least:] if self._agree(was, now, more)), None)
        if more is not None:
            return self.shown(was, more), self.shown(now, more), self.change(now - was, more)
        written = float(self._written(now, MORE[-1]) - self._written(was, MORE[-1]))
        change = self.change(written / 100 if self.form == "percent" else written, MORE[-1])
        return self.shown(was, MORE[-1]), self.shown(now, MORE[-1]), change

    def _agree(self, was: float, now: float, more: int) -> bool:
        """Whether the values, as they are written, differ by as much as is written of their difference."""
        if not all(map(isfinite, (was, now))):
            return True
        old, new, change = (self._written(value, more) for value in (was, now, now - was))
        return new - old == change

    def _written(self, value: float, more: int) -> Decimal:
        digits = Decimal(self._digits(abs(value), more).replace(",", ""))
        return -digits if value < 0 else digits

    def written(self, value: float, more: int = 0) -> float:
        """The value that is meant by what `shown` writes of it."""
        return float(self._written(value, more)) / (100 if self.form == "percent" else 1)

    def shown(self, value: float, more: int = 0) -> str:
        """A value or a mean for people: ``0.713``, ``71.3 %``, ``83.0`` of points of 100, ``1,251`` tokens.

        It has `more` decimals than that.
        """
        digits = self._digits(abs(value), more)
        sign = MINUS if value < 0 and digits.strip("0.,") else ""
        return f"{sign}{digits} %" if self.form == "percent" else f"{sign}{digits}"

    def change(self, value: float, more: int = 0) -> str:
        """A difference of two values with its sign: ``−0.053``, ``+3.5 points`` of a share in per cent, ``0``.

        One that is not 0 and would be written as 0 is ``≈ 0``. It has `more` decimals than that.
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


MORE = (0, 1)
"""Decimals that are added where two values and their difference do not agree without."""

ROUNDING = 1e-12
"""Below this a difference of means comes from their rounding."""
