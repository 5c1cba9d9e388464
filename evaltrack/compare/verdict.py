"""Applies each rule of the gate to metrics and changed questions, and decides: regression, no regression or unknown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import get_args

from evaltrack.compare.comparison import Comparison, MetricDelta, Rule, RuleState, Verdict
from evaltrack.compare.gate import Gate
from evaltrack.compare.pairing import Paired
from evaltrack.metrics.catalogue import USAGE
from evaltrack.metrics.metric import EXACT
from evaltrack.stats.significance import holm

LEVEL = 0.03
"""Family-wise level of the tests that show a loss."""

NET_LEVEL = 0.01
"""Level of the test over all questions that broke and were fixed. Below it nothing is rerun."""

ABOUT_DECLINING = frozenset({"negative_pass_rate", "false_abstention_rate"})
"""Metrics whose default rule alone is no gate: they do not measure retrieval or answers."""

Name = tuple[str, str]
"""A metric with a rule: its domain, empty for the whole set, and its name."""

FLIPS: Name = ("", "flips")
"""The rule on broken questions that needs a significant loss."""


def decide(made: Comparison, paired: Paired) -> Comparison:
    """Return the comparison with the state of each rule, its verdict, and the metrics that regressed.

    The verdict is regression if a rule is broken, else unknown if a rule is unknown, else ok.
    """
    by_place = {"": made.metrics} | {group.name: group.metrics for group in made.groups if group.kind == "domain"}
    with_rule = {(where, m.name): m for where, measured in by_place.items() for m in measured if m.threshold}
    states = _states(made, with_rule)
    rules = [
        *_flips(made, states),
        *(Rule("metric", states[name], m, name[0]) for name, m in with_rule.items() if name in states),
        *_unmeasured(made.gate, by_place, paired),
        *_uncovered(made.gate, paired),
    ]
    if not any(_decides(rule, made.gate) for rule in rules):
        rules.append(Rule("no rule", "unknown"))
    rules.sort(key=lambda rule: get_args(RuleState).index(rule.state))
    verdicts: dict[RuleState, Verdict] = {"broken": "regression", "unknown": "unknown"}

    def marked(where: str, measured: Sequence[MetricDelta]) -> tuple[MetricDelta, ...]:
        return tuple(replace(each, regressed=states.get((where, each.name)) == "broken") for each in measured)

    return replace(
        made,
        metrics=marked("", made.metrics),
        groups=tuple(replace(g, metrics=marked(g.name, g.metrics)) if g.kind == "domain" else g for g in made.groups),
        verdict=verdicts.get(rules[0].state, "ok"),
        rules=tuple(rules),
    )


def _decides(rule: Rule, gate: Gate) -> bool:
    if rule.metric is None:
        return rule.kind in ("flips", "net loss", "another system")
    return rule.metric.name not in ABOUT_DECLINING - gate.explicit


def _states(made: Comparison, metrics: Mapping[Name, MetricDelta]) -> dict[Name, RuleState]:
    """Return the state of each rule on a mean, and of `FLIPS` if a loss must be significant.

    Latencies and tokens always vary; latencies are tested if enough questions are beyond the quantile. Scores of the
    user's own are tested if the answers vary, which reruns do not score; other rules if the scores vary.
    """
    evidence, tested = made.gate.kind == "evidence", metrics
    if not evidence and (made.gate.kind == "seed" or not made.reruns.varied):
        vary, reworded = USAGE if made.gate.kind == "auto" else (), made.reruns.reworded
        tested = {name: m for name, m in metrics.items() if (m.name in vary and m.interval) or (m.own and reworded)}
    states: dict[Name, RuleState] = {
        name: "broken" if metric.over else "held" for name, metric in metrics.items() if name not in tested
    }
    tests = {name: (metric.p_value, metric.changed) for name, metric in tested.items() if metric.p_value is not None}
    if evidence:
        tests[FLIPS] = (made.loss.p, made.loss.changed)
    corrected = holm({name: p for name, (p, _) in tests.items()})
    for name, (_, changed) in tests.items():
        if name != FLIPS and not metrics[name].over:
            states[name] = "held"
        elif corrected[name] < LEVEL:
            states[name] = "broken"
        else:  # `unknown` if even the best outcome of the test is not significant
            states[name] = "unknown" if evidence and len(tests) * 0.5**changed >= LEVEL else "not shown"
    return states


def _flips(made: Comparison, states: Mapping[Name, RuleState]) -> Iterator[Rule]:
    flips = [flip for flip in made.flips if not flip.accepted]
    broke, limit = made.count("broke") - (len(made.flips) - len(flips)), made.gate.allow_flips
    if made.reruns.another_system:
        yield Rule("another system", "unknown", value=broke)
    if made.reruns.another_system or not made.passing_compared:
        return
    counted = broke - sum(not flip.counts for flip in flips)
    if made.gate.kind == "auto" and made.loss.p < NET_LEVEL and (counted > limit or not limit):
        yield Rule("net loss", "broken", value=counted, limit=limit, p_value=made.loss.p)
        return
    yield Rule("flips", states.get(FLIPS, "broken") if counted > limit else "held", value=counted, limit=limit)
    unclear = tuple(flip.id for flip in flips if flip.rerun is not None and flip.rerun.state == "unclear")
    if counted <= limit < counted + len(unclear):
        yield Rule("unclear", "unknown", value=len(unclear), names=unclear)


def _unmeasured(gate: Gate, by_place: Mapping[str, Sequence[MetricDelta]], paired: Paired) -> Iterator[Rule]:
    """Yield rules whose metric was not measured on both sides, or again on too few questions besides the lost ones.

    A default rule applies if one side measured its metric. None applies if a selection has none of its questions.
    """
    frame = paired.frame
    for where, metric in ((place, each) for place, metrics in by_place.items() for each in metrics if each.threshold):
        lost, was = frame["lost"][frame["domain_c"].eq(where) | (not where)].sum(), metric.n + metric.num_lost
        if metric.num_lost > lost + (1 - gate.needed) * was + EXACT:
            yield Rule("not measured", "unknown", where=where, names=(metric.name,), value=metric.n, limit=was)
    measured = {where: {metric.name for metric in metrics} for where, metrics in by_place.items()}
    common, sides = set(paired.frame["id"].to_numpy()), (paired.baseline.frame, paired.candidate.frame)
    for name in sorted(gate.drops.keys() - measured[""]):
        score = paired.table.by_metric.get(name)  # latency metrics are in the table if measured
        asked = [frame.loc[frame[score.name].notna(), "id"] for frame in sides if score and score.name in frame]
        on_one_side = any(not common.isdisjoint(ids.to_numpy()) for ids in asked)
        unselected = paired.not_selected and not on_one_side and any(map(len, asked))
        if (name in gate.explicit and not unselected) or (on_one_side and name not in paired.left_out):
            yield Rule("not measured", "unknown", names=(name,))
    for domain, rules in gate.domain_drops.items():
        for name in sorted(rules.keys() - measured.get(domain, rules.keys())):
            yield Rule("not measured", "unknown", where=domain, names=(name,))


def _uncovered(gate: Gate, paired: Paired) -> Iterator[Rule]:
    """Yield the rules on missing questions: lost ones, too many edited or removed, and runs of a part of the set."""
    is_lost = paired.frame["lost"]
    lost, failed = int(is_lost.sum()), int((paired.failed("b") & ~is_lost).sum())
    common, edited, removed = len(paired.frame), len(paired.edited), len(paired.removed)
    allowed = 0.0 if gate.min_coverage is None else (1 - gate.min_coverage) * (common - failed) + EXACT
    if lost:
        yield Rule("lost", "unknown" if lost > allowed else "held", value=lost, limit=int(allowed))
    whole, left = common + edited + removed, common - lost - failed
    if (edited or removed or failed) and left < gate.needed * whole:
        yield Rule("coverage", "unknown", value=left, limit=whole)
    sides = (paired.baseline, paired.candidate)
    fewer = min(len(side.frame) for side in sides)
    if paired.not_selected and common + edited < gate.needed * fewer:
        yield Rule("coverage", "unknown", value=common, limit=fewer)
    if any(side.info.is_part for side in sides) and not gate.allow_partial:
        yield Rule("partial", "unknown")
