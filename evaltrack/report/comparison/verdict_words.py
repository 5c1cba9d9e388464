"""The verdict of a comparison and what it is about: the first words of every rendering."""

from __future__ import annotations

from collections.abc import Sequence

from evaltrack.compare.comparison import Comparison

VERDICTS = {"ok": "No regression", "regression": "Regression", "unknown": "Could not tell"}

PARTS = {
    "retrieval": "recall_at_k",
    "pass": "pass_rate",
    "judge score": "judge_score",
    "reasoning score": "reasoning_score",
}
"""What a verdict can be about, each with the metric that stands for it."""


def verdict_words(comparison: Comparison) -> str:
    """The verdict: ``No regression``, or ``No regression in retrieval; pass and judge score not compared``."""
    verdict, other_rubric = VERDICTS[comparison.verdict], "reasoning score"
    if comparison.candidate.signature.rubric == "reasoning":
        other_rubric = "judge score"
    apart = [part for part, name in PARTS.items() if name in comparison.left_out and part != other_rubric]
    if not apart:
        return verdict
    measured = {metric.name for metric in comparison.metrics}
    within = [part for part, name in PARTS.items() if name in measured]
    where = f" in {_and(within)}" if within and comparison.verdict != "unknown" else ""
    return f"{verdict}{where}; {_and(apart)} not compared"


def _and(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def reasons(comparison: Comparison) -> list[str]:
    """All reasons of the verdict; that nothing regressed is said of what is compared alone."""
    words = verdict_words(comparison)
    scoped = words[0].lower() + words[1:]
    return [reason.replace("no regression", scoped, 1) for reason in comparison.reasons]
