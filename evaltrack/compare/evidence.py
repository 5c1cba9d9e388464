"""Which losses are shown by the numbers: exact paired tests of all rules of a gate, corrected for being several. Pure.

A metric's test is the sign-flip test of its paired scores, that of flips McNemar's; both are exact and two-sided, and
what got better is no loss. Fewer than six changed questions cannot show anything, so that their tests count for nothing
in the correction either (Tarone 1990).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evaltrack.compare.comparison import GroupDelta, MetricDelta
from evaltrack.stats.significance import LEVEL, MIN_CHANGED, holm, mcnemar_exact

FLIPS = "flips"


def shown_losses(
    metrics: Iterable[MetricDelta], groups: Sequence[GroupDelta], pass_to_fail: int, fail_to_pass: int
) -> frozenset[str]:
    """The names of the rules whose loss is shown: those of `rule_name`, and `FLIPS`.

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
