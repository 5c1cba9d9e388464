"""The gate's rules: which drops are tolerated, and which losses exact paired tests show. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from evaltrack.compare.comparison import GroupDelta, MetricDelta, Threshold
from evaltrack.errors import UsageError
from evaltrack.metrics.catalogue import LATENCIES, SCORES, MetricTable
from evaltrack.metrics.metric import Score
from evaltrack.stats.significance import LEVEL, MIN_CHANGED, holm, mcnemar_exact

DEFAULT_DROPS = {
    score.metric: Threshold(score.tolerance.drop, relative=score.tolerance.relative)
    for score in SCORES
    if score.tolerance
}
"""What is tolerated where nothing else is said; a rule applies where both sides measured its metric."""

ABOUT_DECLINING = frozenset(score.metric for score in SCORES if score.tolerance and not score.tolerance.alone)
"""Metrics whose default rule alone is no gate: they say nothing of what was found or answered."""

MIN_COVERAGE = 0.9
"""Share of the questions that must be left to compare after edits, where nothing else is said."""

EXACT = 1e-9
"""A drop that exceeds its threshold by less is exactly at it, which is no regression."""

GateKind = Literal["auto", "seed", "evidence", "significant"]


@dataclass(frozen=True)
class Gate:
    """What counts as a regression. `drops` are for the whole set, `domain_drops` for one domain.

    `asked` names the metrics whose rule was asked for: one that was not measured is no pass. Of the others no drop
    within the `noise` of the judge is a regression. `min_coverage` is the share of the questions that must be measured
    again; None lets no question be lost, and few be edited or removed (`MIN_COVERAGE`).

    `kind` says what a loss that exceeds its rule needs besides:

    - ``auto``: nothing where the target is deterministic or cannot be asked again; where its answers scatter, evidence.
    - ``seed``: nothing; any question that goes from pass to fail is a regression, and nothing is asked again.
    - ``evidence``: that the loss is shown (see `shown_losses`).
    - ``significant``: that alone; no threshold.
    """

    drops: Mapping[str, Threshold] = field(default_factory=lambda: dict(DEFAULT_DROPS))
    domain_drops: Mapping[str, Mapping[str, Threshold]] = field(default_factory=dict)
    allow_flips: int = 0
    min_coverage: float | None = None
    kind: GateKind = "auto"
    explicit: frozenset[str] = frozenset()
    noise: Mapping[str, float] = field(default_factory=dict)

    def without(self, metrics: Collection[str]) -> Gate:
        """The same rules, none of them for these metrics."""
        drops = {name: drop for name, drop in self.drops.items() if name not in metrics}
        domains = {
            domain: {name: drop for name, drop in rules.items() if name not in metrics}
            for domain, rules in self.domain_drops.items()
        }
        return replace(self, drops=drops, domain_drops=domains, explicit=self.explicit - set(metrics))

    def without_domains(self, domains: Collection[str]) -> Gate:
        """The same rules, but for those of these domains."""
        kept = {domain: rules for domain, rules in self.domain_drops.items() if domain not in domains}
        return replace(self, domain_drops=kept)

    @property
    def metrics(self) -> frozenset[str]:
        """The metrics that have a rule, of the whole set or of a domain."""
        return frozenset(self.drops).union(*self.domain_drops.values())

    @property
    def wants_evidence(self) -> bool:
        """Whether a loss must be shown whatever the target is."""
        return self.kind in ("evidence", "significant")

    def exceeded(self, metric: MetricDelta, higher_is_better: bool) -> bool:
        """Whether the metric, which carries its threshold, got worse by more than tolerated."""
        if metric.threshold is None:
            return False
        floor = 0.0 if metric.name in self.explicit else self.noise.get(metric.name, 0.0)
        return exceeds(metric, metric.threshold, higher_is_better, floor)


def exceeds(metric: MetricDelta, threshold: Threshold, higher_is_better: bool, floor: float = 0.0) -> bool:
    """Whether the drop is larger than tolerated, and than a floor; exactly at the threshold is not."""
    worse = -metric.delta if higher_is_better else metric.delta
    tolerated = threshold.amount * abs(metric.baseline) if threshold.relative else threshold.amount
    return worse > max(tolerated, floor) + EXACT


def parse_drops(
    texts: Iterable[str], metrics: Iterable[str], table: MetricTable | None = None, rises: Iterable[str] = ()
) -> tuple[dict[str, Threshold], dict[str, dict[str, Threshold]], frozenset[str]]:
    """Thresholds for the whole set and by domain, from ``mrr=10%``, ``judge_score=0.05``, ``travel:recall_at_k=2%``.

    The `metrics` that may be named are of a `table`; None is that of ours. `rises` are the same of metrics of which
    lower is better, ``latency_p95=20%``. The third value names those that have a rule of their own for the whole set.

    They are added to `DEFAULT_DROPS`; ``mrr=off`` takes a rule away.

    Raises:
        UsageError: a text has another form, names no known metric or one that only informs, or a number out of range.
    """
    by_metric, names = (table or MetricTable()).by_metric, set(metrics)
    by_metric = by_metric | {score.metric: score for score in LATENCIES}
    rising = names & {name for name, score in by_metric.items() if not score.higher_is_better}
    rising |= {score.metric for score in LATENCIES}
    overall, domains, explicit = dict(DEFAULT_DROPS), dict[str, dict[str, Threshold]](), set[str]()
    rules = [("max_drop", text) for text in texts] + [("max_rise", text) for text in rises]
    for setting, text in rules:
        rule = f"`{setting}={text}`"
        match = re.fullmatch(r"(?:(.+):)?(\w+)=(off|[0-9.eE+-]+)(%?)", text.strip())
        if match is None:
            raise UsageError(f"{rule}: write METRIC=5%, METRIC=0.05, METRIC=off or DOMAIN:METRIC=5%")
        domain, name, amount, percent = match.groups()
        known, other = (names, rising) if setting == "max_drop" else (rising, names)
        if name not in known and name in other:
            way, cure = ("lower", "max_rise") if setting == "max_drop" else ("higher", "max_drop")
            raise UsageError(f"{rule}: of `{name}` {way} is better; write `{cure}={text}`")
        if name not in known:
            raise UsageError(f"{rule}: no metric `{name}`; known: {', '.join(sorted(known))}")
        if not by_metric[name].gates:
            raise UsageError(f"{rule}: `{name}` is declared with gates=False: it only informs")
        place = domains.setdefault(domain, {}) if domain else overall
        if amount == "off":
            place.pop(name, None)
        else:
            place[name] = _threshold(rule, by_metric[name], amount, relative=bool(percent))
            explicit |= set() if domain else {name}
    return overall, domains, frozenset(explicit & overall.keys())


def _threshold(rule: str, score: Score, amount: str, *, relative: bool) -> Threshold:
    """The threshold in a rule.

    Raises:
        UsageError: it is no number from 0, or so large that no drop can exceed it: `mrr=5` where `mrr=5%` was meant.
    """
    try:
        value = float(amount) / (100 if relative else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise UsageError(f"{rule}: `{amount}` is not a number from 0")
    may_fall_below_0 = score.own and score.span is None
    most = (1.0 if score.higher_is_better and not may_fall_below_0 else None) if relative else score.span
    if most is not None and value > most:
        cure = (
            "write a share up to 100%" if relative else f"write {score.metric}={amount}%, or an amount up to {most:g}"
        )
        raise UsageError(f"{rule}: no drop can exceed it; {cure}")
    return Threshold(value, relative)


FLIPS = "flips"


def shown_losses(
    metrics: Iterable[MetricDelta], groups: Sequence[GroupDelta], pass_to_fail: int, fail_to_pass: int
) -> frozenset[str]:
    """The names of the rules whose loss is shown: those of `rule_name`, and `FLIPS`.

    A metric's test is the sign-flip test of its paired scores, that of flips McNemar's; both are exact and two-sided.
    Fewer than six changed questions cannot show anything, so that their tests count for nothing in the correction
    either (Tarone 1990).

    Args:
        metrics: Metrics of the whole set.
        groups: Domains with rules of their own.
        pass_to_fail: Questions that broke.
        fail_to_pass: Questions that were fixed.
    """
    tested = [(rule_name(metric), metric) for metric in metrics]
    tested += [(rule_name(metric, group), metric) for group in groups for metric in group.metrics]
    p_values = {name: metric.p_value for name, metric in tested if metric.p_value is not None}
    enough = {name for name, metric in tested if metric.changed >= MIN_CHANGED}
    losses = {name for name, metric in tested if is_worse(metric)}
    if pass_to_fail + fail_to_pass >= MIN_CHANGED:
        p_values[FLIPS] = mcnemar_exact(pass_to_fail, fail_to_pass)
        enough.add(FLIPS)
        losses |= {FLIPS} if pass_to_fail > fail_to_pass else set()
    corrected = holm({name: p for name, p in p_values.items() if name in enough})
    return frozenset(name for name, p in corrected.items() if p < LEVEL and name in losses)


def rule_name(metric: MetricDelta, group: GroupDelta | None = None) -> str:
    """What the test of a metric is called, in the whole set or in a domain."""
    return metric.name if group is None else f"{group.name}:{metric.name}"


def is_worse(metric: MetricDelta) -> bool:
    """Whether the candidate's mean is on the worse side."""
    return metric.delta < 0 if metric.higher_is_better else metric.delta > 0


def differs(metric: MetricDelta) -> bool:
    """Whether the difference is shown to be one: its 95 % interval leaves out 0."""
    return metric.interval is not None and (metric.interval[0] > 0 or metric.interval[1] < 0)
