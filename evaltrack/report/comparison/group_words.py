"""How the groups of a comparison are worded: domains, difficulties and categories."""

from __future__ import annotations

from evaltrack.compare.comparison import Comparison, GroupDelta
from evaltrack.report.comparison.words import count, course_words, group_regressed, group_words, shown_groups
from evaltrack.report.words import metric_change, metric_number, metric_title


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
    parts = [f"{broke:,} broke, {fixed:,} {'was' if fixed == 1 else 'were'} fixed"] if flips and broke + fixed else []
    parts += [", ".join(moved)] if moved else []
    return f"{group_words(group)}, {count(group.num_questions, 'question')}: {'; '.join(parts) or 'no change'}"


def group_cell(group: GroupDelta, name: str) -> str:
    """A metric of a group: what it is now and by how much it changed, ``0.750 (−0.053)``."""
    metric = next((metric for metric in group.metrics if metric.name == name), None)
    if metric is None:
        return "–"
    change = f" ({metric_change(name, metric.delta)})" if metric.delta and metric.shows_change else ""
    return f"{metric_number(name, metric.candidate)}{change}{' FAIL' if metric.regressed else ''}"
