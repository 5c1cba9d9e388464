"""Describes the gate's rules and the results of reruns in sentences."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from evaltrack.compare.change import Change
from evaltrack.compare.comparison import Comparison, MetricDelta, Rule, RuleKind, RuleState
from evaltrack.compare.reruns import Rerun, RerunState
from evaltrack.metrics.catalogue import metric_form
from evaltrack.records.amount import count, first_of, verb
from evaltrack.report.escaping import clip
from evaltrack.report.words import metric_title

MARKS: dict[RuleState, str] = {"broken": "✕", "unknown": "?", "not shown": "~", "held": "✓"}
"""The sign before a rule of the gate."""

NAMED = 3
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
    return WORDS[rule.kind](rule, comparison) if rule.kind in WORDS else SENTENCES[rule.kind]


SENTENCES: dict[RuleKind, str] = {
    "another system": "the rerun target is not the evaluated one: it gives the baseline's answers",
    "no rule": "no rule could be applied: their metrics were not measured on both sides",
}


def _net_loss_words(rule: Rule, comparison: Comparison) -> str:
    broke = _flipped_words(rule.value, comparison, " and ") if rule.value else "questions pass in fewer of their trials"
    return f"{broke}; the loss is significant ({p_words(rule.p_value or 0.0)})"


def _flipped_words(broke: int, comparison: Comparison, link: str = ", ") -> str:
    fixed = comparison.count("fixed")
    return f"{count(broke, 'question')} broke{link}{fixed:,} {verb(fixed, 'was', 'were')} fixed"


def _unclear_words(rule: Rule, _comparison: Comparison) -> str:
    fails = f"{count(rule.value, 'question')} ({first_of(rule.names, NAMED)}) failed every rerun"
    return f"{fails}, but may have been lucky in the baseline; use a baseline with --trials 3"


def _not_measured_words(rule: Rule, comparison: Comparison) -> str:
    title = metric_title(rule.names[0], comparison.candidate.signature.k)
    return f"{title} has a rule, but was not measured on both sides{_where(rule)}"


def _lost_words(rule: Rule, _comparison: Comparison) -> str:
    allowed = f"; {rule.limit:,} allowed" if rule.limit else ""
    lost = f"{count(rule.value, 'question')} {verb(rule.value, 'was', 'were')} lost"
    return f"{lost}: measured in the baseline, not in the candidate{allowed}"


def _coverage_words(rule: Rule, comparison: Comparison) -> str:
    gone = {"edited": comparison.edited, "removed": comparison.removed, "not selected": comparison.not_selected}
    why = ", ".join(f"{len(ids):,} {what}" for what, ids in gone.items() if ids)
    left = f"{rule.value:,} of {count(rule.limit, 'question')} {verb(rule.value, 'is', 'are')} left to compare"
    return f"{left}{f': {why}' if why else ', the others failed'} (see --min-coverage)"


def _partial_words(_rule: Rule, comparison: Comparison) -> str:
    sides = {"candidate": comparison.candidate, "baseline": comparison.baseline}
    parts = ((whose, run.signature.selection) for whose, run in sides.items())
    words = [f"the {whose} is {part.questions:,} of {count(part.total, 'question')}" for whose, part in parts if part]
    return f"{' and '.join(words)}; use --allow-partial to allow this"


def rules_words(comparison: Comparison) -> list[tuple[RuleState, str]]:
    """Return the state and the sentence of each rule, broken rules first."""
    return [(rule.state, clip(rule_words(rule, comparison), 300)) for rule in comparison.rules]


def reasons(comparison: Comparison) -> list[str]:
    """Return the reasons of the verdict: the rules that do not hold, or the first rule if all hold."""
    telling = [words for state, words in rules_words(comparison) if state != "held"]
    return telling or [words for _, words in rules_words(comparison)[:1]]


def reruns_words(comparison: Comparison) -> str:
    """Return ``Reran in 12 calls (3,456 tokens, $0.010): 2 flaky, 1 confirmed.``; empty if no rerun was needed."""
    reruns, states = comparison.reruns, Counter(rerun.state for rerun in comparison.reruns.by_id.values())
    if reruns.calls:
        price = [count(reruns.tokens, "token")] * bool(reruns.tokens)
        price += [] if reruns.usd is None else [f"${reruns.usd:.3f}"]
        parts = ", ".join(f"{states[state]:,} {words}" for state, words in STATES.items() if states[state])
        cost = f" ({', '.join(price)})" if price else ""
        failed = f" ({reruns.why_not})" if reruns.why_not else ""
        return f"Reran in {count(reruns.calls, 'call')}{cost}{f': {parts}' if parts else ''}{failed}."
    if states["not rerun"] and reruns.why_not:
        return f"Not rerun: {clip(reruns.why_not, 200).rstrip('.')}."
    return ""


def rerun_words(change: Change) -> str:
    """Return the result of a question's reruns in brackets after a space; empty if it needed none."""
    rerun = change.rerun
    if rerun is None or (rerun.state == "confirmed" and not rerun.passed + rerun.failed):
        return ""
    judge = ", the judge's verdict changed" if rerun.judge_changed else ""
    return f" [{STATES[rerun.state]}{judge}{': ' if (counts := _counts(rerun)) else ''}{counts}]"


def _counts(rerun: Rerun) -> str:
    """Return ``passed 1 of 3 reruns, 4 of 5 before``; of trials ``passed 1 of 3, and 0 of 1 rerun; 3 of 3 before``."""
    times = rerun.passed + rerun.failed
    run = f"{rerun.run_passed:,} of {rerun.run_trials:,}" if rerun.run_trials else ""
    again = f"{rerun.passed:,} of {count(times, 'rerun')}" if times else ""
    now = ", and ".join(filter(None, (run, again)))
    before = f"{rerun.record_passed:,} of {rerun.record_trials:,} before" if rerun.record_trials else ""
    words = ("; " if run else ", ").join(filter(None, (now, before)))
    return f"passed {words}" if words else ""


def _flips_words(rule: Rule, comparison: Comparison) -> str:
    spared = comparison.count("broke") - rule.value
    states = Counter(change.rerun.state for change in comparison.flips if change.rerun and not change.counts)
    kinds = [f"{states[state]:,} {STATES[state]}" for state in ("flaky", "lucky", "unclear") if states[state]]
    accepted = sum(bool(change.accepted) for change in comparison.flips)
    kinds += [f"{accepted:,} accepted"] * bool(accepted)
    also = f"; {', '.join(kinds)}" if kinds else ""
    if rule.state == "held" and not rule.value:
        return f"no confirmed failures; not counted: {', '.join(kinds)}" if spared else "no question broke"
    allowed = f"{rule.limit:,} allowed"
    chance = " (not significant)" if rule.state in ("not shown", "unknown") else ""
    return f"{_flipped_words(rule.value, comparison)}{chance}; {allowed}{also}"


def _metric_words(metric: MetricDelta, rule: Rule, comparison: Comparison) -> str:
    """Return ``MRR fell from 0.900 to 0.750, 16.7 % (allowed: 10 %)``, with change and limit in one unit."""
    score, more = metric_form(metric.name), _exact_decimals(metric)
    title = f"{score.title.format(k=comparison.candidate.signature.k)}{_where(rule)}"
    part = f" on the {metric.n:,} measured in both" if metric.num_lost else ""
    was, now = score.shown(metric.baseline, more), score.shown(metric.candidate, more)
    if was == now:
        return f"{title} did not change{part} (allowed: {allowed_words(metric)})"
    way = "rose" if metric.delta > 0 else "fell"
    size = f"{drop_share(metric)} %" if metric.drop is not None else ""
    if metric.threshold is not None and not metric.threshold.relative:
        size = score.change(abs(metric.delta), more).removeprefix("+")
    chance = f"; not significant ({p_words(metric.p_value or 1.0)})" if rule.state == "not shown" else ""
    chance = "; too few changes for a significant result" if rule.state == "unknown" else chance
    change = f"{title} {way} from {was} to {now}{f', {size}' if size else ''}{part}"
    return f"{change} (allowed: {allowed_words(metric)}){chance}"


WORDS: dict[RuleKind, Callable[[Rule, Comparison], str]] = {
    "flips": _flips_words,
    "net loss": _net_loss_words,
    "unclear": _unclear_words,
    "not measured": _not_measured_words,
    "lost": _lost_words,
    "coverage": _coverage_words,
    "partial": _partial_words,
}
"""The function that describes each rule that is not on a metric."""


def allowed_words(metric: MetricDelta) -> str:
    """Return ``5 %`` of the baseline's value, ``0.05`` of the metric, ``10 points`` of a share, or empty."""
    rule = metric.threshold
    if rule is None:
        return ""
    if rule.relative or metric_form(metric.name).form != "percent":
        return str(rule)
    return f"{100 * rule.amount:.4g} points"


def _where(rule: Rule) -> str:
    return f" in {clip(rule.where, 40)}" if rule.where else ""


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
