"""The gate's rules: which drops are tolerated, and what the verdict is. Pure (SPEC section 8)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from evaltrack.compare.comparison import MetricDelta, Threshold
from evaltrack.errors import UsageError

DEFAULT_DROPS = {"recall_at_k": Threshold(0.05, relative=True), "mrr": Threshold(0.10, relative=True)}
"""Seed 004: recall drops by more than 5 %, MRR by more than 10 %."""

EXACT = 1e-9
"""A drop that exceeds its threshold by less is exactly at it, which is no regression."""

SIGNIFICANT = 0.05

GateKind = Literal["rules", "significant", "both"]


@dataclass(frozen=True)
class Gate:
    """What counts as a regression. `drops` are for the whole set, `domain_drops` for one domain.

    `asked` names the metrics whose rule was asked for: one that was not measured is no pass.

    `kind`: `rules` decides by thresholds and flips; `significant` by intervals and McNemar's p; `both` wants both.
    """

    drops: Mapping[str, Threshold] = field(default_factory=lambda: dict(DEFAULT_DROPS))
    domain_drops: Mapping[str, Mapping[str, Threshold]] = field(default_factory=dict)
    allow_flips: int = 0
    min_coverage: float = 1.0
    kind: GateKind = "rules"
    asked: frozenset[str] = frozenset()

    def without(self, metrics: Collection[str]) -> Gate:
        """The same rules, none of them for these metrics."""
        kept = {name: drop for name, drop in self.drops.items() if name not in metrics}
        domains = {
            domain: {name: drop for name, drop in drops.items() if name not in metrics}
            for domain, drops in self.domain_drops.items()
        }
        return replace(self, drops=kept, domain_drops=domains, asked=self.asked - set(metrics))

    def regressed(self, metric: MetricDelta, higher_is_better: bool) -> bool:
        """Whether the metric, which carries its threshold, is a regression."""
        if metric.threshold is None:
            return False
        significant = worse_for_sure(metric, higher_is_better)
        if self.kind == "significant":
            return significant
        over = exceeds(metric, metric.threshold, higher_is_better)
        return over and (significant or self.kind == "rules")

    def too_many_flips(self, pass_to_fail: int, fail_to_pass: int, p_value: float) -> bool:
        """Whether the questions that went from pass to fail are a regression."""
        significant = pass_to_fail > fail_to_pass and p_value < SIGNIFICANT
        if self.kind == "significant":
            return significant
        return pass_to_fail > self.allow_flips and (significant or self.kind == "rules")


def exceeds(metric: MetricDelta, threshold: Threshold, higher_is_better: bool) -> bool:
    """Whether the drop is larger than tolerated; exactly at the threshold is not."""
    worse = -metric.delta if higher_is_better else metric.delta
    tolerated = threshold.amount * abs(metric.baseline) if threshold.relative else threshold.amount
    return worse > tolerated + EXACT


def worse_for_sure(metric: MetricDelta, higher_is_better: bool) -> bool:
    """Whether the whole interval of the difference lies on the worse side of 0; a point is no evidence."""
    if metric.interval is None or metric.interval[0] == metric.interval[1]:
        return False
    low, high = metric.interval
    return high < 0 if higher_is_better else low > 0


def parse_drops(
    texts: Iterable[str], known: Iterable[str]
) -> tuple[dict[str, Threshold], dict[str, dict[str, Threshold]]]:
    """Thresholds for the whole set and by domain, from ``mrr=10%``, ``judge_score=0.05``, ``travel:recall_at_k=2%``.

    They are added to `DEFAULT_DROPS`; ``mrr=off`` takes a rule away.

    Raises:
        UsageError: a text has another form, names no known metric, or a number out of range.
    """
    overall, domains = dict(DEFAULT_DROPS), dict[str, dict[str, Threshold]]()
    names = set(known)
    for text in texts:
        match = re.fullmatch(r"(?:(.+):)?(\w+)=(off|[0-9.eE+-]+)(%?)", text.strip())
        if match is None:
            raise UsageError(f"--max-drop `{text}`: write METRIC=5%, METRIC=0.05, METRIC=off or DOMAIN:METRIC=5%")
        domain, name, amount, percent = match.groups()
        if name not in names:
            raise UsageError(f"--max-drop `{text}`: no metric `{name}`; known: {', '.join(sorted(names))}")
        rules = domains.setdefault(domain, {}) if domain else overall
        if amount == "off":
            rules.pop(name, None)
        else:
            rules[name] = _threshold(text, amount, relative=bool(percent))
    return overall, domains


def _threshold(text: str, amount: str, *, relative: bool) -> Threshold:
    try:
        value = float(amount) / (100 if relative else 1)
    except ValueError:
        value = -1.0
    if not 0 <= value < float("inf"):
        raise UsageError(f"--max-drop `{text}`: `{amount}` is not a number from 0")
    return Threshold(value, relative)
