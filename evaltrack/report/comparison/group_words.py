"""How domains, difficulties and categories of a comparison are worded, the same in every rendering."""

from __future__ import annotations

from collections import Counter

from evaltrack.compare.comparison import Comparison, GroupDelta
from evaltrack.report.comparison.words import clip, p_words
from evaltrack.report.words import LATENCY_TITLES, METRIC_TITLES, OWN_IN_GROUPS, metric_change, metric_value


def shown_groups(comparison: Comparison) -> tuple[list[GroupDelta], list[str]]:
    """The groups worth showing, and the metrics they have.

    Those that regressed come first; of a kind of which there is only one, which says the same as the whole, no others.
    """
    kinds = Counter(group.kind for group in comparison.groups)
    regressed = [group for group in comparison.groups if group_regressed(group)]
    others = [group for group in comparison.groups if kinds[group.kind] > 1 and not group_regressed(group)]
    groups = regressed + others
    measured = {metric.name: metric for group in groups for metric in group.metrics}
    own = [name for name, metric in measured.items() if metric.own]
    return groups, [*(name for name in (*METRIC_TITLES, *LATENCY_TITLES) if name in measured), *own[:OWN_IN_GROUPS]]


def group_regressed(group: GroupDelta) -> bool:
    """Whether a rule for this group was broken."""
    return any(metric.regressed for metric in group.metrics)


def group_words(group: GroupDelta) -> str:
    """``domain travel``."""
    return f"{group.kind} {clip(group.name, 40)}"


def group_flips(group: GroupDelta) -> str:
    """How many of its questions flipped each way, with the corrected p where some did: ``-2 +1, p 1.000``."""
    if not group.pass_to_fail and not group.fail_to_pass:
        return "0"
    return f"-{group.pass_to_fail:,} +{group.fail_to_pass:,}, {p_words(group.p_value)}"


def group_cell(group: GroupDelta, name: str) -> str:
    """A metric of a group: what it is now and by how much it changed, ``0.750 (-0.053)``."""
    metric = next((metric for metric in group.metrics if metric.name == name), None)
    if metric is None:
        return "–"
    change = f" ({metric_change(metric.name, metric.delta)})" if metric.delta and metric.shows_change else ""
    return f"{metric_value(metric.name, metric.candidate)}{change}{' FAIL' if metric.regressed else ''}"
