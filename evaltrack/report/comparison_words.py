"""Describes metrics, rules, questions and groups of a comparison in words that all renderings share."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple
from urllib.parse import quote

from evaltrack.compare.causes import fallen_dimensions
from evaltrack.compare.change import CAUSES, Change, CulpritKind, Fate
from evaltrack.compare.comparison import Comparison, GroupDelta, MetricDelta, RuleState, Verdict
from evaltrack.compare.culprits import Culprit
from evaltrack.metrics.catalogue import metric_form
from evaltrack.metrics.metric import EXACT, MINUS
from evaltrack.report.escaping import one_line
from evaltrack.report.templates import say, sentences
from evaltrack.report.text_diff import Piece, condensed, word_diff
from evaltrack.report.words import (
    LATENCY_TITLES,
    METRIC_TITLES,
    OWN_IN_GROUPS,
    metric_change,
    metric_course,
    metric_title,
)

VERDICT_TITLES: dict[Verdict, str] = {"ok": "No regression", "regression": "Regression", "unknown": "Unknown"}

Tone = Literal["ok", "bad", "warn", "muted"]
"""Green, red, amber, or grey."""

TONES: dict[Verdict, Tone] = {"ok": "ok", "regression": "bad", "unknown": "warn"}

MARKS: dict[RuleState, str] = {"broken": "✕", "unknown": "?", "not shown": "~", "held": "✓"}
"""The sign before a rule of the gate."""


class FateWords(NamedTuple):
    """A fate for people: its verb for one question and for several, its meaning, its code on a page, and its colour."""

    verb: str
    verbs: str
    meaning: str
    group: str
    tone: Tone


AS_BEFORE = "passes or fails as before"
FATES: dict[Fate, FateWords] = {
    "broke": FateWords("broke", "broke", "passed before, fails now", "flip", "bad"),
    "lost": FateWords("was lost", "were lost", "measured in the baseline, not in the candidate", "lost", "warn"),
    "lower score": FateWords("scores lower", "score lower", AS_BEFORE, "drop", "warn"),
    "fixed": FateWords("was fixed", "were fixed", "failed before, passes now", "fix", "ok"),
    "newly measured": FateWords(
        "is newly measured", "are newly measured", "in the candidate, not in the baseline", "new", "muted"
    ),
    "higher score": FateWords("scores higher", "score higher", AS_BEFORE, "gain", "ok"),
    "changed": FateWords(
        "changed", "changed", "different answer, sources, texts or judge's reasoning; same result", "other", "muted"
    ),
    "identical": FateWords(
        "is identical", "are identical", "answer, sources, texts and verdict are the same", "same", "muted"
    ),
}


def marker(golden: str) -> str:
    """Return the hidden first line of every comment for this golden set. It is the same for all runs."""
    name = quote(one_line(golden, 80), safe=" ").replace("--", "-%2D")
    return f"<!-- evaltrack:{name} -->"


def rules_words(comparison: Comparison) -> list[tuple[RuleState, str]]:
    """Return the state and the sentence of each rule, broken rules first."""
    return [(rule.state, one_line(say.rule(rule, comparison), 300)) for rule in comparison.rules]


def reasons(comparison: Comparison) -> list[str]:
    """Return the reasons of the verdict: the rules that do not hold, or the first rule if all hold."""
    rules = rules_words(comparison)
    return [words for state, words in rules if state != "held"] or [words for _, words in rules[:1]]


def headline_changes(comparison: Comparison) -> str:
    """Return the numbers of questions that broke, were fixed and were lost, and the change of the main metric.

    Example: ``15 questions broke, 7 were fixed. Pass rate 71.3 % → 67.8 %.`` If passing is not compared, the first
    compared metric replaces the pass rate.
    """
    return " ".join(f"{words[0].upper()}{words[1:]}." for words in sentences("headline_changes.txt", c=comparison))


def fallen(comparison: Comparison) -> list[tuple[MetricDelta, str]]:
    """Return the metrics that regressed, or those of domains with their name, if no question broke; else none."""
    if comparison.verdict != "regression" or not comparison.passing_compared or comparison.count("broke"):
        return []
    of_groups = [(each, group.name) for group in comparison.groups for each in group.metrics if each.regressed]
    return [(metric, "") for metric in comparison.metrics if metric.regressed] or of_groups


STEPS = 3
"""Next steps that are named."""


def next_steps(comparison: Comparison) -> list[str]:
    """Return at most `STEPS` sentences. If nothing got worse, the step says how to make this run the next baseline."""
    return sentences("steps.txt", c=comparison)[:STEPS]


def note_words(comparison: Comparison) -> list[str]:
    """Return the notes: everything that the other numbers leave out, with the reason."""
    alike: dict[Any, list[MetricLine]] = defaultdict(list)  # metrics over the same questions share a sentence
    for line in metric_lines(comparison):
        if line.metric.partial and line.metric.measured:
            alike[line.metric.n, line.metric.measured].append(line)
    return sentences("notes.txt", c=comparison, partial=alike.values())


# Metrics

Way = Literal["better", "worse", "same"]
NO_CHANGE = "no change"


@dataclass(frozen=True)
class MetricLine:
    """One metric as texts.

    `change` is the difference, or the reason that none is shown. `on` names the questions of the means if these are
    not all. `way` says if the metric got better or worse.
    """

    metric: MetricDelta
    title: str
    was: str
    now: str
    change: str
    interval: str
    on: str
    way: Way


def metric_lines(comparison: Comparison, metrics: Iterable[MetricDelta] | None = None) -> list[MetricLine]:
    """Return a line for each of the metrics, or for all metrics of the comparison. The main metrics are first."""
    shown = comparison.metrics if metrics is None else metrics
    shown = sorted(shown, key=lambda metric: metric_form(metric.name).headline or len(METRIC_TITLES))
    return [_metric_line(comparison, metric) for metric in shown]


def _metric_line(comparison: Comparison, metric: MetricDelta) -> MetricLine:
    was, now, change = metric_course(metric.name, metric.baseline, metric.candidate)
    if change == "0" or (was == now and not metric.shows_change):
        change = NO_CHANGE
    elif not metric.shows_change:
        change = f"left out, {metric.num_lost:,} not measured"
    title = metric_title(metric.name, comparison.candidate.signature.k)
    on = f"on the {metric.n:,} measured in both" if metric.partial or comparison.verdict == "unknown" else ""
    way = "same" if change == "≈ 0" else way_of(comparison, metric)
    return MetricLine(metric, title, was, now, change, interval_words(metric), on, way)


def way_of(comparison: Comparison, metric: MetricDelta) -> Way:
    """Return the direction of the change: `same` if the verdict is unknown or the means leave out lost questions."""
    if not metric.delta or not metric.shows_change or (comparison.verdict == "unknown" and not metric.regressed):
        return "same"
    return "worse" if (metric.delta < 0) == metric.higher_is_better else "better"


def interval_words(metric: MetricDelta) -> str:
    """Return the interval of the difference, ``−0.102 to −0.004``; empty if none is known or no change is shown."""
    if metric.interval is None or not metric.shows_change:
        return ""
    low, high = (metric_change(metric.name, end) for end in metric.interval)
    unit = " points" if high.endswith(" points") else ""
    return f"{low.removesuffix(unit)} to {high}"


def near_limit(metric: MetricDelta) -> bool:
    """Return True if the change and its limit differ, but can look equal with the usual decimals."""
    rule = metric.threshold
    change = metric.drop if rule and rule.relative else metric.delta
    return rule is not None and EXACT < abs(abs(change or 0.0) - rule.amount) < 0.0005


def drop_share(metric: MetricDelta) -> str:
    """Return the change in per cent of the baseline's value: ``16.7``, or ``10.04`` if the limit is 10."""
    return f"{100 * abs(metric.drop or 0.0):.{2 if near_limit(metric) else 1}f}"


# Questions


def cause_rest(change: Change) -> tuple[str, str]:
    """Return the text that follows the title of the cause, and the text that joins them; both empty if there is none.

    Examples: ``: `` and ``the tool `search` is now called``, or a space and ``(also: the target failed)``.
    """
    words, title = say.why(change), CAUSES[change.cause.kind].title
    if words == title:
        return "", ""
    joint = next((each for each in (", ", " ") if words.startswith(title + each)), "")
    return (joint, words[len(title) + len(joint) :]) if joint else (": ", words)


def answers(change: Change) -> tuple[str, str] | None:
    """Return the answers before and after; None if a row is missing or the answers are equal."""
    if change.before is None or change.after is None:
        return None
    before, after = change.before.answer or "", change.after.answer or ""
    return (before, after) if before != after else None


def pieces(change: Change) -> Iterator[Piece]:
    """Yield the word diff of the answers, without text that is far from any change."""
    pair = answers(change)
    return condensed(word_diff(*pair)) if pair else iter(())


def piece_words(text: str) -> tuple[str, str, str]:
    """Return a piece of a word diff as a line, between its spaces. Unprintable text is a replacement character."""
    before, after = (" " if end.isspace() else "" for end in (text[:1], text[-1:]))
    return before, one_line(text, 500) or "\N{REPLACEMENT CHARACTER}", after


# The main cause

REASONS = 4
"""Hard fails or dimensions that are named."""


def reasoning_words(comparison: Comparison, kind: CulpritKind) -> str:
    """Return ``HF2 9, HF5 8``, or ``Crux 5, Brevity 3``: how often each hard fail is new, or each dimension fell."""
    times = Counter[str]()
    for change in comparison.worse:
        was, now = change.before, change.after
        if was and now and kind == "hard_fail":
            times.update(set(now.hard_fails) - set(was.hard_fails))
        elif was and now and kind == "dimensions_fell":
            times.update(title for title, _, _ in fallen_dimensions(was, now))
    return ", ".join(f"{name} {number:,}" for name, number in times.most_common(REASONS))


def num_failed(error: Culprit, comparison: Comparison) -> int:
    """Return the number of questions with this kind of error, whatever the message."""
    alike = (number for kind, number in comparison.causes.items() if kind == error.kind)
    return max(len(error.ids), next(alike, 0))


def quoted(name: str | None, limit: int) -> str:
    """Return a foreign name in quotation marks."""
    words = one_line(name, limit)
    return f"“{words}”" if words else ""


# Groups


def shown_groups(comparison: Comparison) -> list[GroupDelta]:
    """Return the groups to show, the worst first.

    Groups that broke a rule are first, then those with the most broken questions net of fixed ones, then those whose
    first metric fell most. The only group of its kind equals the whole set, and is shown only if it broke a rule.
    """
    kinds = Counter(group.kind for group in comparison.groups)

    def badness(group: GroupDelta) -> tuple[bool, int, float]:
        first_drop = next((metric.drop or 0.0 for metric in group.metrics), 0.0)
        return not group_regressed(group), group.fail_to_pass - group.pass_to_fail, -first_drop

    return sorted((each for each in comparison.groups if kinds[each.kind] > 1 or group_regressed(each)), key=badness)


def group_metrics(groups: Sequence[GroupDelta]) -> list[str]:
    """Return the metrics of the groups in the order of every table, followed by the first user-defined scores."""
    measured = {metric.name: metric for group in groups for metric in group.metrics}
    own = [name for name, metric in measured.items() if metric.own]
    return [*(name for name in (*METRIC_TITLES, *LATENCY_TITLES) if name in measured), *own[:OWN_IN_GROUPS]]


def group_regressed(group: GroupDelta) -> bool:
    """Return True if a rule for this group was broken."""
    return any(metric.regressed for metric in group.metrics)


def group_changed(group: GroupDelta) -> bool:
    """Return True if a question of the group flipped, or a mean changed visibly."""
    return bool(group.pass_to_fail or group.fail_to_pass) or any(map(moved, group.metrics))


def moved(metric: MetricDelta) -> bool:
    """Return True if the mean changed visibly."""
    return metric_change(metric.name, metric.delta) not in ("0", "≈ 0")


def group_flips(group: GroupDelta) -> str:
    """Return the numbers of questions that broke and were fixed: ``−2 +1``."""
    flips = f"{MINUS}{group.pass_to_fail:,} +{group.fail_to_pass:,}"
    return flips if group.pass_to_fail or group.fail_to_pass else "0"
