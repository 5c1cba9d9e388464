"""Reads success criteria such as `recall_at_k>=0.8`, and checks them and the aims of reasoning on a run's metrics.

A criterion is met, missed or undecided. It is undecided if its metric was not measured, or if no retriever can reach
the bound on this golden set. An undecided criterion is never a pass.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from evaltrack.errors import UsageError
from evaltrack.metrics.catalogue import SCORES
from evaltrack.metrics.metric import EXACT, Aim, relative
from evaltrack.records.config import did_you_mean

NAMED = {
    "minimum": "hit_rate>0.80,mrr>0.70,judge_score>0.75",
    "target": "hit_rate>0.90,mrr>0.85,judge_score>0.85,combined_score>1.20",
    "good": "recall_at_k>0.8,precision_at_k>0.6,mrr>0.7",
    "functional": "tool_invoked>=1,tools_coordinated>=1,sources_included>=1",
}
"""Named criteria: for answers with sources (two levels), for retrieval, and for an agent that works at all."""

_FORMS = f"write {', '.join(NAMED)}, or bounds like recall_at_k>=0.8"

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    ">=": lambda value, bound: value >= bound - EXACT,
    "<=": lambda value, bound: value <= bound + EXACT,
    ">": lambda value, bound: value > bound + EXACT,
    "<": lambda value, bound: value < bound - EXACT,
}


@dataclass(frozen=True)
class Criterion:
    """A bound on one metric of a run, such as ``recall_at_k>=0.8``."""

    metric: str
    sign: str
    bound: float

    def __str__(self) -> str:
        return f"{self.metric} {self.sign} {self.bound:g}"


@dataclass(frozen=True)
class Checked:
    """A criterion compared with a run.

    `met` is None if the metric was not measured or the bound cannot be reached. Precision in the first k cannot reach 1
    for questions that expect fewer than k sources. Then `reachable` is the highest possible value of the metric.
    """

    criterion: Criterion
    value: float | None
    met: bool | None
    reachable: float | None = None

    @property
    def state(self) -> Literal["met", "missed", "not measured", "not reachable"]:
        """The result in one or two words."""
        if self.met is not None:
            return "met" if self.met else "missed"
        return "not measured" if self.reachable is None else "not reachable"


def parse_criteria(text: str, metrics: Mapping[str, object] | frozenset[str]) -> tuple[Criterion, ...]:
    """Read the criteria in `text`: names of `NAMED` and bounds like ``metric>=number``, separated by commas.

    An empty text requires nothing. `metrics` are the names of the metrics that the caller can check.

    Raises:
        UsageError: a part is neither, or its metric is unknown; or there are only commas and spaces.
    """
    criteria: list[Criterion] = []
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if text and not parts:  # e.g. an empty variable in a script: it must not silently require nothing
        raise UsageError(f"`require=`: `{text}` holds no criterion; {_FORMS}")
    for part in parts:
        if part.lower() in NAMED:
            criteria += parse_criteria(NAMED[part.lower()], metrics)
            continue
        match = re.fullmatch(r"(\w+)\s*(>=|<=|>|<)\s*([+-]?(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d{1,2})?)", part, re.IGNORECASE)
        if match is None:
            raise UsageError(f"`require=`: `{part}`: {_FORMS}")
        name, sign, number = match.groups()
        if name not in metrics:
            raise UsageError(f"`require=`: no metric `{name}`; {did_you_mean(name, metrics)}")
        criteria.append(Criterion(name, sign, float(number)))
    return tuple(criteria)


def check_criteria(criteria: tuple[Criterion, ...], metrics: Mapping[str, float]) -> tuple[Checked, ...]:
    """Return each criterion compared with the metrics of a run. `precision_at_k.max` bounds what can be reached."""
    return tuple(_check(criterion, metrics) for criterion in criteria)


def _check(criterion: Criterion, metrics: Mapping[str, float]) -> Checked:
    value, most = metrics.get(criterion.metric), metrics.get(f"{criterion.metric}.max")
    if value is None:
        return Checked(criterion, None, None)
    holds = _COMPARE[criterion.sign]
    if criterion.sign.startswith(">") and most is not None and not holds(most, criterion.bound):
        return Checked(criterion, value, None, most)
    return Checked(criterion, value, holds(value, criterion.bound))


RUBRIC_AIMS: Mapping[str, Aim] = {score.metric: score.aim for score in SCORES if score.aim}
"""Metric -> its aim."""


@dataclass(frozen=True)
class MeasuredAim:
    """An aim and a run's mean, and the mean of the run's baseline in a comparison."""

    metric: str
    measured: float
    aim: Aim
    baseline: float | None = None

    @property
    def reached(self) -> bool:
        """True if the run reaches the aim."""
        return self.aim.reached(self.measured)

    @property
    def over_published(self) -> float:
        """The change from the published baseline to the run, relative to the baseline."""
        return relative(self.measured, self.aim.published)

    @property
    def over_baseline(self) -> float | None:
        """The change from the baseline to the run, relative to the baseline; None if that is 0 or not known."""
        return relative(self.measured, self.baseline) if self.baseline else None


def measured_aims(metrics: Mapping[str, float], baseline: Mapping[str, float] | None = None) -> Iterator[MeasuredAim]:
    """Yield each aim whose metric the run measured."""
    for name, aim in RUBRIC_AIMS.items():
        if name in metrics:
            yield MeasuredAim(name, metrics[name], aim, (baseline or {}).get(name))
