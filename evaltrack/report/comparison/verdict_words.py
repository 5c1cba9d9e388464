"""The verdict of a comparison and what it is about: the first words of every rendering."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from evaltrack.compare.chance import ByRule
from evaltrack.compare.comparison import Comparison
from evaltrack.records.amount import count
from evaltrack.report.words import selection_words

VERDICTS = {"ok": "No regression", "regression": "Regression", "unknown": "Could not tell"}

Tone = Literal["ok", "bad", "warn"]
"""Green, red, or amber."""

TONES: dict[str, Tone] = {"ok": "ok", "regression": "bad", "unknown": "warn"}

BY_RULE: dict[ByRule, str] = {
    "no net loss": "The rule: each question that breaks counts, and one that was fixed does not make up for it.",
    "may be chance": "The rule: each question that breaks counts, also where so few may break by chance.",
}
"""What a regression by the rule on questions that break alone means."""

PARTS = {
    "retrieval": "recall_at_k",
    "pass": "pass_rate",
    "judge score": "judge_score",
    "reasoning score": "reasoning_score",
}
"""What a verdict can be about, each with the metric that stands for it."""


BY_RULE_BADGES: dict[ByRule, str] = {
    "no net loss": "No net loss, but a regression by the rule",
    "may be chance": "Regression by the rule, may be chance",
}
"""What such a regression is called where there is room for a few words."""


def badge_of(verdict: str, headline: str | None) -> tuple[str, Tone]:
    """A recorded verdict in a few words, and its colour, as the page of its comparison has them.

    Whether it is a regression by the rule alone is known from its `headline`, which is `verdict_words`.
    """
    if verdict == "regression" and " by the rule" in (headline or ""):
        return BY_RULE_BADGES["no net loss" if (headline or "").startswith("No net loss") else "may be chance"], "warn"
    return VERDICTS.get(verdict, verdict), TONES.get(verdict, "warn")


def verdict_tone(comparison: Comparison) -> Tone:
    """The colour of the verdict: a regression by the rule on questions that break alone is amber, and no red one."""
    return "warn" if comparison.by_rule else TONES[comparison.verdict]


def verdict_words(comparison: Comparison) -> str:
    """The verdict: ``No regression``, or ``No regression in retrieval; pass and judge score not compared``.

    Of runs that were asked a part of their golden set: ``No regression in a selection of 50 of 1,000 questions``. Of
    one that no loss is shown of: ``No net loss, but a regression by the rule``, or ``…, may be chance``.
    """
    verdict, other_rubric = VERDICTS[comparison.verdict], "reasoning score"
    if comparison.candidate.signature.rubric == "reasoning":
        other_rubric = "judge score"
    apart = [part for part, name in PARTS.items() if name in comparison.left_out and part != other_rubric]
    part = _part_words(comparison)
    rule, remark = " by the rule" if comparison.by_rule else "", ""
    if comparison.by_rule == "no net loss":
        verdict = f"No net loss, but a {verdict.lower()}"
    elif comparison.by_rule:
        remark = f", {comparison.by_rule}"
    if not apart:
        return f"{verdict}{rule}{part}{remark}"
    measured = {metric.name for metric in comparison.metrics}
    within = [part for part, name in PARTS.items() if name in measured]
    where = f" in {_and(within)}" if within and comparison.verdict != "unknown" else ""
    return f"{verdict}{rule}{where}{part}{remark}; {_and(apart)} not compared"


def _part_words(comparison: Comparison) -> str:
    """How much of the golden set each side was asked; empty where it was all of it."""
    was, now = comparison.baseline.signature.selection, comparison.candidate.signature.selection
    words = f" in a selection of {now.questions:,} of {count(now.total, 'question')}" if now else ""
    return words + (f" against a baseline of {was.questions:,} of {count(was.total, 'question')}" if was else "")


def selections_words(comparison: Comparison) -> str:
    """``, candidate: 50 of 1,000 questions (sample 50, seed 0)`` of each side that was asked a part of the set."""
    sides = {"candidate": comparison.candidate, "baseline": comparison.baseline}
    parts = {whose: selection_words(run.signature) for whose, run in sides.items()}
    return "".join(f", {whose}: {words}" for whose, words in parts.items() if words)


def _and(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def reasons(comparison: Comparison) -> list[str]:
    """All reasons of the verdict; that nothing regressed is said of what is compared alone."""
    words = verdict_words(comparison)
    scoped = words[0].lower() + words[1:]
    return [reason.replace("no regression", scoped, 1) for reason in comparison.reasons]
