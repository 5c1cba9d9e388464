"""Describes the gate's rules and the results of reruns in sentences."""

from __future__ import annotations

from collections.abc import Sequence

from evaltrack.compare.change import Change
from evaltrack.compare.comparison import Comparison, MetricDelta, Rule, RuleState
from evaltrack.compare.reruns import RerunState
from evaltrack.metrics.catalogue import metric_form
from evaltrack.records.amount import count
from evaltrack.report.escaping import clip
from evaltrack.report.templates import speaker
from evaltrack.report.words import metric_title

MARKS: dict[RuleState, str] = {"broken": "✕", "unknown": "?", "not shown": "~", "held": "✓"}
"""The sign before a rule of the gate."""

MOST_DECIMALS = 6
ALIKE = 1e-9
"""A smaller difference is a rounding error of means."""

STATES: dict[RerunState, str] = {
    "confirmed": "confirmed",
    "flaky": "flaky",
    "lucky": "probably lucky",
    "unclear": "broken or lucky",
    "not rerun": "not rerun",
}


def rule_words(rule: Rule, comparison: Comparison) -> str:
    """Return one rule as a line: its value, its limit, and the reason if it is not decided."""
    if rule.metric is not None:
        return _metric_words(rule.metric, rule, comparison)
    return _say(rule.kind.replace(" ", "_"), rule, comparison)


def rules_words(comparison: Comparison) -> list[tuple[RuleState, str]]:
    """Return the state and the sentence of each rule, broken rules first."""
    return [(rule.state, clip(rule_words(rule, comparison), 300)) for rule in comparison.rules]


def reasons(comparison: Comparison) -> list[str]:
    """Return the reasons of the verdict: the rules that do not hold, or the first rule if all hold."""
    telling = [words for state, words in rules_words(comparison) if state != "held"]
    return telling or [words for _, words in rules_words(comparison)[:1]]


def reruns_words(comparison: Comparison) -> str:
    """Return ``Reran in 12 calls (3,456 tokens, $0.010): 2 flaky, 1 confirmed.``; empty if no rerun was needed."""
    return _say("reruns", comparison.reruns, [rerun.state for rerun in comparison.reruns.by_id.values()])


def rerun_words(change: Change) -> str:
    """Return the result of a question's reruns in brackets after a space; empty if it needed none."""
    rerun = change.rerun
    if rerun is None or (rerun.state == "confirmed" and not rerun.passed + rerun.failed):
        return ""
    return f" [{_say('rerun', rerun)}]"


def _counted(states: Sequence[RerunState]) -> str:
    """Return ``2 flaky, 1 confirmed``."""
    return ", ".join(f"{states.count(state):,} {words}" for state, words in STATES.items() if state in states)


def _metric_words(metric: MetricDelta, rule: Rule, comparison: Comparison) -> str:
    """Return ``MRR fell from 0.900 to 0.750, 16.7 % (allowed: 10 %)``, with change and limit in one unit."""
    score, more = metric_form(metric.name), _exact_decimals(metric)
    title = (
        f"{score.title.format(k=comparison.candidate.signature.k)}{f' in {clip(rule.where, 40)}' if rule.where else ''}"
    )
    part = f" on the {metric.n:,} measured in both" if metric.num_lost else ""
    was, now = score.shown(metric.baseline, more), score.shown(metric.candidate, more)
    size = f"{drop_share(metric)} %" if metric.drop is not None else ""
    if metric.threshold is not None and not metric.threshold.relative:
        size = score.change(abs(metric.delta), more).removeprefix("+")
    return _say("metric", rule, title, part, was, now, size)


def allowed_words(metric: MetricDelta) -> str:
    """Return ``5 %`` of the baseline's value, ``0.05`` of the metric, ``10 points`` of a share, or empty."""
    rule = metric.threshold
    if rule is None:
        return ""
    if rule.relative or metric_form(metric.name).form != "percent":
        return str(rule)
    return f"{100 * rule.amount:.4g} points"


def drop_share(metric: MetricDelta) -> str:
    """Return the change in per cent of the baseline's value, which is not 0: ``16.7``, or ``10.04`` for a limit of 10.

    It has one decimal, or as many as needed to show on which side of the limit it is.
    """
    percent, rule = 100 * abs(metric.drop or 0.0), metric.threshold
    if rule is None or not rule.relative or (metric.drop or 0.0) < 0:
        return f"{percent:.1f}"
    limit = 100 * rule.amount
    beyond = percent > limit + ALIKE
    texts = (f"{percent:.{decimals}f}" for decimals in range(1, MOST_DECIMALS))
    return next((text for text in texts if (float(text) > limit + ALIKE) == beyond), f"{percent:.{MOST_DECIMALS}f}")


def _exact_decimals(metric: MetricDelta) -> int:
    """Return the number of extra decimals that show on which side of an absolute limit the drop is."""
    rule, score = metric.threshold, metric_form(metric.name)
    worse = -metric.delta if metric.higher_is_better else metric.delta
    if rule is None or rule.relative or worse <= 0:
        return 0
    beyond = worse > rule.amount + ALIKE
    for more in range(MOST_DECIMALS):
        was, now, size = (score.written(value, more) for value in (metric.baseline, metric.candidate, worse))
        if all((each > rule.amount + ALIKE) == beyond for each in (abs(now - was), size)):
            return more
    return MOST_DECIMALS


def share_words(number: int, total: int) -> str:
    """Return ``3 of 9 questions``, ``all 9 questions``, ``both questions``, or ``the only question``."""
    if number < total:
        return f"{number:,} of {count(total, 'question')}"
    return {1: "the only question", 2: "both questions"}.get(total, f"all {count(total, 'question')}")


def p_words(p_value: float) -> str:
    """Return ``p = 0.62``, or ``p < 0.001``."""
    if p_value < 0.001:
        return "p < 0.001"
    return f"p = {p_value:.2f}" if p_value >= 0.0095 else f"p = {p_value:.3f}"


_say = speaker(
    "rules.txt",
    allowed_words=allowed_words,
    metric_title=metric_title,
    p_words=p_words,
    counted=_counted,
    words_of_state=STATES,
)
