"""How domains, difficulties and categories of a comparison are worded, the same in every rendering."""

from __future__ import annotations

from collections import Counter

from evaltrack.compare.comparison import Comparison, GroupDelta
from evaltrack.compare.share_words import p_words
from evaltrack.metrics.metric import MINUS
from evaltrack.records.amount import count, verb
from evaltrack.report.comparison.words import clip, course_words
from evaltrack.report.words import (
    LATENCY_TITLES,
    METRIC_TITLES,
    OWN_IN_GROUPS,
    metric_change,
    metric_number,
    metric_title,
)


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
    """How many of its questions flipped each way, with the corrected p where some did: ``−2 +1, p = 1.00``."""
    if not group.pass_to_fail and not group.fail_to_pass:
        return "0"
    return f"{MINUS}{group.pass_to_fail:,} +{group.fail_to_pass:,}, {p_words(group.p_value)}"


def changed_groups(comparison: Comparison) -> list[GroupDelta]:
    """The groups in which anything changed, the worst first: those that broke a rule, then by the questions that broke
    beyond those that were fixed, and by how far their first metric fell. Of a kind of which there is only one, none.
    """
    groups = [group for group in shown_groups(comparison)[0] if _changed(group)]
    return sorted(groups, key=lambda group: (not group_regressed(group), -_net_broke(group), -_first_drop(group)))


def _changed(group: GroupDelta) -> bool:
    flipped = group.pass_to_fail or group.fail_to_pass
    return bool(flipped) or any(metric_change(m.name, m.delta) not in ("0", "≈ 0") for m in group.metrics)


def _net_broke(group: GroupDelta) -> int:
    return group.pass_to_fail - group.fail_to_pass


def _first_drop(group: GroupDelta) -> float:
    return next((metric.drop or 0.0 for metric in group.metrics), 0.0)


def group_sentence(group: GroupDelta, k: int, *, flips: bool) -> str:
    """``domain travel, 26 questions: 4 broke, 1 was fixed; Pass rate 73.1 % → 57.7 %, Recall@5 0.812 → 0.750``."""
    moved = [
        f"{metric_title(metric.name, k)} {course_words(metric)}{' (rule broken)' if metric.regressed else ''}"
        for metric in group.metrics
        if metric.regressed or metric_change(metric.name, metric.delta) not in ("0", "≈ 0")
    ]
    broke, fixed = group.pass_to_fail, group.fail_to_pass
    parts = [f"{broke:,} broke, {fixed:,} {verb(fixed, 'was', 'were')} fixed"] if flips and broke + fixed else []
    parts += [", ".join(moved)] if moved else []
    return f"{group_words(group)}, {count(group.num_questions, 'question')}: {'; '.join(parts) or 'no change'}"


def group_cell(group: GroupDelta, name: str) -> str:
    """A metric of a group: what it is now and by how much it changed, ``0.750 (−0.053)``."""
    metric = next((metric for metric in group.metrics if metric.name == name), None)
    if metric is None:
        return "–"
    now, difference = metric_number(name, metric.candidate), metric_change(name, metric.delta)
    change = f" ({difference})" if metric.delta and metric.shows_change else ""
    return f"{now}{change}{' FAIL' if metric.regressed else ''}"
