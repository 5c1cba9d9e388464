"""The verdict of a comparison: each rule of the gate with its value and its limit. Pure; `report` words it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from evaltrack.compare.changes import Changes
from evaltrack.compare.comparison import GroupDelta, MetricDelta, Rule, Verdict
from evaltrack.compare.gate import MIN_COVERAGE, Gate
from evaltrack.compare.pairing import Paired
from evaltrack.compare.reruns import Reruns
from evaltrack.stats.significance import holm

LEVEL = 0.03
"""Family-wise level of the tests that show a loss."""

NET_LEVEL = 0.01
"""Level of the test over all questions that broke and were fixed below which nothing need be rerun."""

FLIPS = "flips"


@dataclass(frozen=True)
class Decided:
    """Metrics and groups with what regressed, the verdict, and each rule."""

    metrics: tuple[MetricDelta, ...]
    groups: tuple[GroupDelta, ...]
    verdict: Verdict
    rules: tuple[Rule, ...]


@dataclass(frozen=True)
class Loss:
    """The one-sided sign-flip test of the pass shares: its `p`, and how many questions `changed`.

    Of single trials it is McNemar's exact test over the questions that broke and were fixed.
    """

    p: float = 1.0
    changed: int = 0

    @property
    def is_shown(self) -> bool:
        """Whether so many more broke than were fixed that no rerun is needed to tell."""
        return self.p < NET_LEVEL


def decide(
    gate: Gate,
    metrics: Sequence[MetricDelta],
    groups: Sequence[GroupDelta],
    changes: Changes,
    paired: Paired,
    reruns: Reruns,
    loss: Loss,
) -> Decided:
    """The verdict; a regression that was found outweighs what is not known, which makes it unknown."""
    states = _metric_states(gate, metrics, groups, reruns, loss)
    metrics = tuple(replace(metric, regressed=states.get(metric.name) == "broken") for metric in metrics)
    groups = tuple(
        replace(
            group,
            metrics=tuple(
                replace(m, regressed=states.get(f"{group.name}:{m.name}") == "broken") for m in group.metrics
            ),
        )
        for group in groups
    )
    rules = [*_flips(gate, changes, reruns, loss, states)]
    rules += [Rule("metric", states[m.name], m) for m in metrics if m.name in states]
    rules += [
        Rule("metric", states[f"{group.name}:{m.name}"], m, group.name)
        for group in groups
        for m in group.metrics
        if f"{group.name}:{m.name}" in states
    ]
    rules += [*_unmeasured(gate, metrics, groups, paired), *_uncovered(gate, changes, paired)]
    if not any(_decides(rule, gate) for rule in rules):
        rules.append(Rule("no rule", "unknown"))
    rules.sort(key=lambda rule: ORDER.index(rule.state))
    state = rules[0].state
    verdict: Verdict = "regression" if state == "broken" else "unknown" if state == "unknown" else "ok"
    return Decided(metrics, groups, verdict, tuple(rules))


ABOUT_DECLINING = frozenset({"negative_pass_rate", "false_abstention_rate"})
"""Metrics whose default rule alone is no gate: they say nothing of what was found or answered."""


def _decides(rule: Rule, gate: Gate) -> bool:
    if rule.metric is None:
        return rule.kind in ("flips", "net loss", "another system")
    return rule.metric.name not in ABOUT_DECLINING - gate.explicit


State = Literal["broken", "unknown", "not shown", "held"]
ORDER: tuple[State, ...] = ("broken", "unknown", "not shown", "held")


def _metric_states(
    gate: Gate, metrics: Sequence[MetricDelta], groups: Sequence[GroupDelta], reruns: Reruns, loss: Loss
) -> dict[str, State]:
    """The state of each rule on a mean, and of `FLIPS` where a loss must be shown, by its name."""
    ruled = {metric.name: metric for metric in metrics if metric.threshold}
    ruled |= {f"{group.name}:{m.name}": m for group in groups for m in group.metrics if m.threshold}
    if gate.kind != "evidence" and (gate.kind == "seed" or not reruns.varied):
        return {name: "broken" if metric.over else "held" for name, metric in ruled.items()}
    tests = {name: (metric.p_value, metric.changed) for name, metric in ruled.items() if metric.p_value is not None}
    if gate.kind == "evidence":
        tests[FLIPS] = (loss.p, loss.changed)
    corrected = holm({name: p for name, (p, _) in tests.items()})
    states: dict[str, State] = {}
    for name, (_, changed) in tests.items():
        can_be_shown = len(tests) * 0.5**changed < LEVEL
        not_shown: State = "unknown" if gate.kind == "evidence" and not can_be_shown else "not shown"
        exceeded = name == FLIPS or ruled[name].over
        states[name] = ("broken" if corrected[name] < LEVEL else not_shown) if exceeded else "held"
    return states


def _flips(gate: Gate, changes: Changes, reruns: Reruns, loss: Loss, states: Mapping[str, State]) -> Iterator[Rule]:
    """The rules on questions that broke."""
    if not changes.counted:
        return
    flips = [flip for flip in changes.flips if not flip.accepted]
    broke, limit = changes.counts["broke"] - (len(changes.flips) - len(flips)), gate.allow_flips
    if reruns.another_system:
        yield Rule("another system", "unknown", value=broke)
        return
    counted = broke - sum(not flip.counts for flip in flips)
    if gate.kind == "evidence":
        yield Rule("flips", states[FLIPS] if counted > limit else "held", value=counted, limit=limit)
        return
    if gate.kind == "auto" and loss.is_shown and (counted > limit or not limit):
        yield Rule("net loss", "broken", value=counted, limit=limit, p_value=loss.p)
        return
    yield Rule("flips", "broken" if counted > limit else "held", value=counted, limit=limit)
    unclear = tuple(flip.id for flip in flips if flip.rerun is not None and flip.rerun.state == "unclear")
    if counted <= limit < counted + len(unclear):
        yield Rule("unclear", "unknown", value=len(unclear), names=unclear)


def _unmeasured(
    gate: Gate, metrics: Sequence[MetricDelta], groups: Sequence[GroupDelta], paired: Paired
) -> Iterator[Rule]:
    """Rules whose metric was not measured on both sides; a default rule if one side measured it."""
    measured = {metric.name for metric in metrics}
    sides = paired.baseline.frame, paired.candidate.frame
    for name in sorted(gate.drops.keys() - measured):
        score = paired.table.by_metric.get(name)  # those of latency are in it where they are measured
        columns = [frame[score.name] for frame in sides if score is not None and score.name in frame]
        on_one_side = any(column.notna().any() for column in columns)
        if name in gate.explicit or (on_one_side and name not in paired.left_out):
            yield Rule("not measured", "unknown", names=(name,))
    there = {group.name: {metric.name for metric in group.metrics} for group in groups if group.kind == "domain"}
    for domain, rules in gate.domain_drops.items():
        for name in sorted(rules.keys() - there.get(domain, set())):
            yield Rule("not measured", "unknown", where=domain, names=(name,))


def _uncovered(gate: Gate, changes: Changes, paired: Paired) -> Iterator[Rule]:
    """Questions that cannot be compared: lost ones, too many edited or removed, and runs of a part of the set."""
    lost, failed = changes.num_lost, changes.failed_before
    common, edited, removed = len(paired.frame), len(paired.edited), len(paired.removed)
    allowed = 0.0 if gate.min_coverage is None else (1 - gate.min_coverage) * (common - failed)
    if lost:
        yield Rule("lost", "unknown" if lost > allowed else "held", value=lost, limit=int(allowed))
    needed = MIN_COVERAGE if gate.min_coverage is None else gate.min_coverage
    whole, left = common + edited + removed, common - lost - failed
    if (edited or removed or failed) and left < needed * whole:
        yield Rule("coverage", "unknown", value=left, limit=whole)
    fewer = min(len(side.frame) for side in (paired.baseline, paired.candidate))
    if paired.not_selected and common + edited < needed * fewer:
        yield Rule("coverage", "unknown", value=common, limit=fewer)
    if any(side.info.signature.selection for side in (paired.baseline, paired.candidate)) and not gate.allow_partial:
        yield Rule("partial", "unknown")
