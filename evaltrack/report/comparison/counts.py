"""How many questions became what, which errors there were, and groups, in the words of every rendering."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import get_args

from evaltrack.compare.chance import ChanceKind
from evaltrack.compare.change import BY_URGENCY, REPEAT_KINDS, Change, Fate, RepeatKind
from evaltrack.compare.comparison import Comparison, GroupDelta
from evaltrack.compare.rule_words import all_words, p_words
from evaltrack.metrics.metric import MINUS
from evaltrack.records.amount import count, verb
from evaltrack.report.comparison.headline import broke_words
from evaltrack.report.comparison.words import clip, course_words
from evaltrack.report.words import (
    LATENCY_TITLES,
    METRIC_TITLES,
    OWN_IN_GROUPS,
    failure_words,
    metric_change,
    metric_number,
    metric_title,
)
from evaltrack.stats.significance import MIN_CHANGED

FATES: dict[Fate, str] = {
    "broke": "passed before, fails now",
    "fixed": "failed before, passes now",
    "lost": "measured in the baseline, not in the candidate",
    "lower score": "passes or fails as before",
    "newly measured": "in the candidate, not in the baseline",
    "higher score": "passes or fails as before",
    "other content": "another answer, sources, texts or judge's words, with the same result",
    "identical": "answer, sources, texts and verdict are the same",
}
"""What each of them means, for people."""

LEGEND: tuple[Fate, ...] = ("lost", "lower score", "higher score", "newly measured", "other content")
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


def flips_words(comparison: Comparison) -> str:
    """``3 questions broke, 0 were fixed. So few could be chance (p = 0.25).`` or what else is known of chance."""
    if not comparison.passing_compared:
        return "Whether questions pass is not compared."
    words = broke_words(comparison)
    return f"{words[0].upper()}{words[1:]}. {chance_words(comparison)}".rstrip()


def chance_words(comparison: Comparison) -> str:
    """Whether what broke and was fixed can be chance, what asking again showed, and that nothing could be asked again.

    ``So few could be chance (p = 0.25).``; empty where nothing broke or was fixed, or that is not compared. p is that
    of McNemar's exact test. Where documents that changed explain all that broke, that is said with it; and where asking
    again showed that something broke, it is not said that it could be chance.
    """
    if comparison.chance is None:
        return ""
    explained = _explained_words(comparison)
    if real := _real_words(comparison):
        return f"{real}{f' {explained[0].upper()}{explained[1:]}.' if explained else ''}"
    if explained and comparison.chance in ALONE:
        words = f"{ALONE[comparison.chance]}, but {explained}.".format(**_numbers(comparison))
        return f"{words}{_asked_again(comparison)}"
    words = CHANCE[comparison.chance].format(no_chance=_no_chance(comparison), **_numbers(comparison))
    return f"{words}.{_asked_again(comparison)}{_not_asked(comparison)}"


SAME_ANSWERS = "the target gives each question the same answer every time"
"""Of a target whose answers do not scatter."""

CHANCE: dict[ChanceKind, str] = {
    "deterministic": "{no_chance}. About other questions {sample} little ({p})",
    "balanced": "No sign of a difference: as many were fixed as broke",
    "few": "So few could be chance ({p})",
    "no sign": "No sign of a difference: nearly as many {less} as {more} ({p})",
    "possible": "It could be chance: {equal} ({p})",
    "excluded": "Chance does not explain the {way}: {equal} ({p})",
}
"""What is known of chance, in words; each goes on or ends behind it."""

ALONE: dict[ChanceKind, str] = {
    "balanced": "As many were fixed as broke",
    "few": "{number} alone could be chance ({p})",
    "no sign": "By their number alone they could be chance ({p})",
    "possible": "By their number alone they could be chance ({p})",
}
"""The same where documents that changed explain what broke."""

NUMBERS = ("None", "One", "Two", "Three", "Four", "Five")
"""How many broke, of those that are few."""

ONE_OF_100, ONE_OF_1000 = 0.01, 0.001
"""Below these p is worded as less than one of so many."""


def _no_chance(comparison: Comparison) -> str:
    """That what broke is no chance; of what failed in an earlier run too it is not said."""
    failed_before = [each for each in comparison.flips if each.repeat is not None and each.repeat.kind == "unsettled"]
    if failed_before:
        return f"{SAME_ANSWERS[0].upper()}{SAME_ANSWERS[1:]}, and what broke failed in an earlier run too"
    return f"What broke is no chance: {SAME_ANSWERS}"


def _numbers(comparison: Comparison) -> dict[str, str]:
    """What stands in these sentences."""
    broke, fixed, p_value = comparison.count("broke"), comparison.count("fixed"), comparison.mcnemar_p
    share = f"{100 * p_value:.0f} of 100" if p_value >= ONE_OF_100 else "less than 1 of 100"
    share = share if p_value >= ONE_OF_1000 else "less than 1 of 1,000"
    return {
        "p": p_words(p_value),
        "sample": "so few say" if broke + fixed < MIN_CHANGED else "this says",
        "equal": f"two equal systems differ so much in {share} comparisons",
        "way": "loss" if broke > fixed else "gain",
        "less": "were fixed" if broke > fixed else "broke",
        "more": "broke" if broke > fixed else "were fixed",
        "number": NUMBERS[broke] if broke < len(NUMBERS) else f"{broke:,}",
    }


def _explained_words(comparison: Comparison) -> str:
    """``one edited document explains all 3``; empty where documents that changed do not explain all that broke."""
    documents, broke = comparison.explaining, comparison.count("broke")
    if not documents:
        return ""
    edited = {"new" if each.novelty == "new" else "edited" if each.kind != "ids_changed" else "" for each in documents}
    kind = next(iter(edited)) if len(edited) == 1 else ""
    one = len(documents) == 1
    which = f"{'one' if one else f'{len(documents):,}'} {kind or 'changed'} document{'' if one else 's'}"
    what = f"{all_words(broke)}{' that broke' if comparison.count('fixed') else ''}"
    return f"{which} explain{'s' if one else ''} {'it' if broke == 1 else what}"


def _real_words(comparison: Comparison) -> str:
    """``1 of the 2 questions that broke is no chance, as asking again showed (15 calls): 1 real``.

    Empty where asking again showed none to be broken, or where chance is excluded without it.
    """
    real, broke = _again_kinds(comparison)["real"], comparison.count("broke")
    if not real or comparison.chance in ("deterministic", "excluded"):
        return ""
    some = f"{real:,} of the {count(broke, 'question')} that broke {verb(real, 'is', 'are')}"
    which = "What broke is" if real >= broke else some
    calls = f" ({count(comparison.asking.calls, 'call')})" if comparison.asking.calls else ""
    return f"{which} no chance, as asking again showed{calls}: {_kinds_words(comparison)}."


def _again_kinds(comparison: Comparison) -> Counter[RepeatKind]:
    """How many of the questions that broke are of each kind, as asking again showed."""
    return Counter(change.repeat.kind for change in comparison.flips if change.repeat)


def _kinds_words(comparison: Comparison) -> str:
    """``1 real, 1 scatter``; empty where nothing was asked again."""
    kinds = _again_kinds(comparison)
    return ", ".join(f"{kinds[kind]:,} {kind}" for kind in REPEAT_KINDS if kinds[kind])


def _asked_again(comparison: Comparison) -> str:
    """What asking again showed, after a space; empty where nothing was asked again."""
    asking = comparison.asking
    if comparison.chance == "deterministic":
        return ""
    if asking.possible and asking.scatter is False and comparison.count("broke"):
        return f" {_no_chance(comparison)}."
    again = _kinds_words(comparison)
    return f" Asked again ({count(asking.calls, 'call')}): {again}." if again and asking.calls else ""


def _not_asked(comparison: Comparison) -> str:
    """That it is not known whether what broke fails always, after a space; empty where it was asked again."""
    asking = comparison.asking
    if not comparison.count("broke") or asking.possible or not asking.why_not:
        return ""
    why = clip(asking.why_not, 200)
    return f" It is not known whether each question that broke fails every time: {why}{'' if why[-1:] == '.' else '.'}"


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
    """How many of its questions flipped each way, with the corrected p where some did: ``−2 +1, p = 1.00``."""
    if not group.pass_to_fail and not group.fail_to_pass:
        return "0"
    return f"{MINUS}{group.pass_to_fail:,} +{group.fail_to_pass:,}, {p_words(group.p_value)}"


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
