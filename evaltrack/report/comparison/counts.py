"""How many questions became what, in the words of every rendering; and which errors there were."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import get_args

from evaltrack.compare.comparison import Change, Comparison
from evaltrack.compare.fate_kinds import Fate
from evaltrack.compare.repeats import REPEAT_KINDS
from evaltrack.report.comparison.words import clip, count, p_words

FATES: dict[Fate, str] = {
    "broke": "pass to fail",
    "fixed": "fail to pass",
    "lost": "measured in the baseline, not in the candidate",
    "lower score": "without a flip",
    "newly measured": "in the candidate, not in the baseline",
    "higher score": "without a flip",
    "other content": "another answer, sources, texts or judge's words, with the same result",
    "identical": "answer, sources, texts and verdict are the same",
}
"""What each of them means, for people."""

LISTED: tuple[Fate, ...] = (
    *("broke", "lost", "lower score", "fixed", "newly measured", "higher score", "other content"),
)
"""The order in which questions are listed."""

MESSAGES = 5
"""Error messages shown for each side."""


def sections(comparison: Comparison) -> Iterator[tuple[Fate, str, tuple[Change, ...], int]]:
    """Fate, title, the questions that are held of it, and how many there are; none that is empty."""
    for fate in LISTED:
        if total := comparison.count(fate):
            yield fate, f"{fate} ({FATES[fate]})", comparison.by_fate[fate], total


def counts_words(comparison: Comparison) -> str:
    """``24 common questions: 1 broke, 1 fixed, 2 lower score, 20 identical``; they add up."""
    parts = [
        f"{comparison.count(fate):,} {fate}"
        for fate in get_args(Fate)
        if comparison.count(fate) or (fate == "broke" and comparison.passing_compared)
    ]
    return f"{count(comparison.num_common, 'common question')}: {', '.join(parts)}"


def flips_words(comparison: Comparison) -> str:
    """How many questions broke and were fixed, with McNemar's p."""
    if not comparison.passing_compared:
        return "whether questions pass is not compared"
    broke, fixed = comparison.count("broke"), comparison.count("fixed")
    if not broke and not fixed:
        return "no question broke or was fixed"
    words = f"{broke:,} broke, {fixed:,} fixed (exact McNemar {p_words(comparison.mcnemar_p)})"
    kinds = Counter(change.repeat.kind for change in comparison.flips if change.repeat)
    again = ", ".join(f"{kinds[kind]:,} {kind}" for kind in REPEAT_KINDS if kinds[kind])
    if not again or not comparison.asking.calls:  # what is known to be deterministic is not asked
        return words
    return f"{words}; asked again ({count(comparison.asking.calls, 'call')}): {again}"


def error_words(comparison: Comparison) -> Iterator[str]:
    """How many errors each side had, those with one message together."""
    for whose, run in (("baseline", comparison.baseline), ("candidate", comparison.candidate)):
        errors = [each for each in comparison.errors if each.side == whose]
        total = max(run.num_errors, sum(each.count for each in errors))
        if not total:
            continue
        messages = [f"{each.count:,} × {clip(each.message)}" for each in errors[:MESSAGES]]
        messages += [f"… and {count(len(errors) - MESSAGES, 'other message')}"] * (len(errors) > MESSAGES)
        of_questions = f" in {count(run.num_questions, 'question')}" if run.num_questions else ""
        yield f"{whose}: {count(total, 'error')}{of_questions}" + (f": {'; '.join(messages)}" if messages else "")
