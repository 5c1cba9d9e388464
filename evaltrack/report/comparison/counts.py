"""How many questions became what, which errors there were, and groups, in the words of every rendering."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import get_args

from evaltrack.compare.change import BY_URGENCY, Change, Fate
from evaltrack.compare.comparison import Comparison, GroupDelta
from evaltrack.metrics.metric import MINUS
from evaltrack.records.amount import count, verb
from evaltrack.report.comparison.words import course_words
from evaltrack.report.words import (
    LATENCY_TITLES,
    METRIC_TITLES,
    OWN_IN_GROUPS,
    clip,
    failure_words,
    metric_change,
    metric_number,
    metric_title,
)

FATES: dict[Fate, str] = {
    "broke": "passed before, fails now",
    "fixed": "failed before, passes now",
    "lost": "measured in the baseline, not in the candidate",
    "lower score": "passes or fails as before",
    "newly measured": "in the candidate, not in the baseline",
    "higher score": "passes or fails as before",
    "changed": "another answer, sources, texts or judge's words, with the same result",
    "identical": "answer, sources, texts and verdict are the same",
}
"""What each of them means, for people."""

LEGEND: tuple[Fate, ...] = ("lost", "lower score", "higher score", "newly measured", "changed")
"""Those of which the name alone does not say what they are."""

MESSAGES = 5
"""Error messages shown for each side."""


def sections(comparison: Comparison) -> Iterator[tuple[Fate, str, tuple[Change, ...], int]]:
    """Fate, title, the questions that are held of it, and how many there are; none that is empty."""
    for fate in BY_URGENCY:
        if total := comparison.count(fate):
            yield fate, f"{fate} ({FATES[fate]})", comparison.by_fate[fate], total


def counts_words(comparison: Comparison) -> str:
    """``24 common questions: 1 broke, 1 fixed, 2 lower score, 20 identical``; they add up."""
    parts = ", ".join(words for words, _ in count_parts(comparison))
    return f"{count(comparison.num_common, 'common question')}: {parts}"


def count_parts(comparison: Comparison) -> list[tuple[str, str]]:
    """``7 lower score`` with what that means, of each that there is; broken ones also where there are none."""
    return [
        (f"{comparison.count(fate):,} {fate}", FATES[fate])
        for fate in get_args(Fate)
        if comparison.count(fate) or (fate == "broke" and comparison.passing_compared)
    ]


def fates_legend(comparison: Comparison) -> str:
    """``Lower score and higher score: passes or fails as before. …``: what those that there are mean."""
    meanings: dict[str, list[str]] = {}
    for fate in LEGEND:
        if comparison.count(fate):
            meanings.setdefault(FATES[fate], []).append(fate)
    lines = (f"{' and '.join(names)}: {meaning}." for meaning, names in meanings.items())
    return " ".join(f"{line[0].upper()}{line[1:]}" for line in lines)


def error_words(comparison: Comparison) -> Iterator[str]:
    """How many errors each side had, those with one message together."""
    for whose, run in (("baseline", comparison.baseline), ("candidate", comparison.candidate)):
        errors = [each for each in comparison.errors if each.side == whose]
        total = max(run.num_errors, sum(each.count for each in errors))
        if not total:
            continue
        messages = [f"{each.count:,} × {clip(failure_words(each.message))}" for each in errors[:MESSAGES]]
        messages += [f"… and {count(len(errors) - MESSAGES, 'other message')}"] * (len(errors) > MESSAGES)
        of_questions = f" in {count(run.num_questions, 'question')}" if run.num_questions else ""
        yield f"{whose}: {count(total, 'error')}{of_questions}" + (f": {'; '.join(messages)}" if messages else "")


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
    """How many of its questions flipped each way: ``−2 +1``."""
    if not group.pass_to_fail and not group.fail_to_pass:
        return "0"
    return f"{MINUS}{group.pass_to_fail:,} +{group.fail_to_pass:,}"


def changed_groups(comparison: Comparison) -> list[GroupDelta]:
    """The groups in which anything changed, the worst first: those that broke a rule, then by the questions that broke
    beyond those that were fixed, and by how far their first metric fell. Of a kind of which there is only one, none.
    """
    groups = [group for group in shown_groups(comparison)[0] if _changed(group)]

    def badness(group: GroupDelta) -> tuple[bool, int, float]:
        first_drop = next((metric.drop or 0.0 for metric in group.metrics), 0.0)
        return not group_regressed(group), group.fail_to_pass - group.pass_to_fail, -first_drop

    return sorted(groups, key=badness)


def _changed(group: GroupDelta) -> bool:
    flipped = group.pass_to_fail or group.fail_to_pass
    return bool(flipped) or any(metric_change(m.name, m.delta) not in ("0", "≈ 0") for m in group.metrics)


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
