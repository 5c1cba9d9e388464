"""The rules of the gate one by one: what each allows, what was measured, and whether it holds. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from evaltrack.compare.comparison import Comparison, MetricDelta
from evaltrack.compare.evidence import FLIPS, shown_losses
from evaltrack.compare.gate import Gate

RuleState = Literal["holds", "broken", "not shown", "unclear"]
"""`not shown`: the limit is exceeded, and chance explains it; `unclear`: too much is missing for the rule to hold."""


@dataclass(frozen=True)
class GateRule:
    """One rule: `kind` says what it is about, `value` and `limit` are numbers of questions.

    A rule for a metric has that `metric`, and the name of the `domain` that it is for, empty for the whole set.
    """

    kind: Literal["broken questions", "lost questions", "metric"]
    state: RuleState
    value: int = 0
    limit: int = 0
    metric: MetricDelta | None = None
    domain: str = ""


def gate_rules(comparison: Comparison) -> list[GateRule]:
    """All rules that were applied, those about questions first."""
    gate = comparison.gate or Gate()
    return [*_question_rules(comparison, gate), *_metric_rules(comparison)]


def _question_rules(comparison: Comparison, gate: Gate) -> Iterator[GateRule]:
    if comparison.passing_compared and any(metric.name == "pass_rate" for metric in comparison.metrics):
        counted = comparison.count("broke") - sum(not flip.counts for flip in comparison.flips)
        state: RuleState = "broken" if _flips_regress(comparison, gate, counted) else "holds"
        if state == "holds" and counted > gate.allow_flips:
            state = "not shown"
        yield GateRule("broken questions", state, counted, gate.allow_flips)
    lost = comparison.count("lost")
    if lost and gate.min_coverage is None:
        yield GateRule("lost questions", "unclear", lost)


def _flips_regress(comparison: Comparison, gate: Gate, counted: int) -> bool:
    """Whether the questions that broke are a regression: of `counted` ones none is scatter or was accepted."""
    scatters = gate.kind == "auto" and comparison.asking.scatter is True
    if not gate.wants_evidence and (counted > gate.allow_flips or not scatters):
        return counted > gate.allow_flips
    broke = comparison.count("broke") - sum(bool(flip.accepted or flip.informs) for flip in comparison.flips)
    shown = FLIPS in shown_losses(comparison.metrics, comparison.groups, broke, comparison.count("fixed"))
    if gate.wants_evidence:
        return shown and (counted > gate.allow_flips or gate.kind == "significant")
    return shown and broke > gate.allow_flips


def _metric_rules(comparison: Comparison) -> Iterator[GateRule]:
    sides = [("", metric) for metric in comparison.metrics]
    sides += [(group.name, metric) for group in comparison.groups for metric in group.metrics]
    for domain, metric in sides:
        if metric.threshold is not None:
            state: RuleState = "broken" if metric.regressed else "not shown" if metric.over else "holds"
            yield GateRule("metric", state, metric=metric, domain=domain)
