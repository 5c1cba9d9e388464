"""How a question went over the last runs, in words: a strip of signs, and the run since which it fails."""

from __future__ import annotations

from evaltrack.compare.comparison import Comparison
from evaltrack.compare.histories import ABSENT, EDITED, ERROR, FAILED, PASSED, UNMEASURED, Histories, HistoryRun
from evaltrack.records.amount import count, verb
from evaltrack.report.comparison.words import clip

SIGNS = {PASSED: "·", FAILED: "✕", ERROR: "!", UNMEASURED: "?", EDITED: "~", ABSENT: " "}
"""A letter of a history as people see it, in a fixed width."""

LETTERS = {
    PASSED: "passed",
    FAILED: "failed",
    ERROR: "ended in an error",
    UNMEASURED: "was not measured",
    EDITED: "was another question",
    ABSENT: "was not asked",
}
"""What each letter means."""

LEAST = 3
"""Runs from which a history says more than the comparison."""


def history_words(comparison: Comparison, question_id: str) -> str:
    """``·····✕✕ (7 runs, oldest first), first broke in PR 481 (a1f9c2e)``; empty where there are too few runs."""
    made = comparison.question_history
    if made is None or len(made.runs) < LEAST or not (strip := made.strip(question_id)):
        return ""
    signs = "".join(SIGNS.get(letter, "?") for letter in strip)
    words = f"{signs} ({count(len(made.runs), 'run')}, oldest first)"
    return ", ".join(filter(None, (words, broke_in(made, question_id, comparison.candidate.run_id))))


def broke_in(made: Histories, question_id: str, candidate: str | None) -> str:
    """``first broke in PR 481 (a1f9c2e)``; empty where it passes, or always failed.

    Of one that had failed before, and then passed: ``broke again in``.
    """
    run = made.first_broke(question_id)
    if run is None:
        return ""
    again = FAILED in made.strip(question_id)[: made.runs.index(run)]
    where = "this run" if run.run_id == candidate else history_run_words(run)
    return f"{'broke again' if again else 'first broke'} in {where}"


def history_run_words(run: HistoryRun) -> str:
    """``PR 481 (a1f9c2e)``: name and commit of a run; its id where no commit is known."""
    return f"{clip(run.name, 80)} ({run.commit[:7] or run.run_id[:8]})"


def legend_words(comparison: Comparison) -> str:
    """What the signs mean; empty where no history is shown."""
    made = comparison.question_history
    if made is None or len(made.runs) < LEAST:
        return ""
    letters = {letter for strip in made.outcomes.values() for letter in strip}
    meanings = (f"{SIGNS[each]} {words}" for each, words in LETTERS.items() if each in letters - {ABSENT})
    return f"History: {', '.join(meanings)}{others_words(made.others, '; ')}"


def others_words(others: int, before: str = "") -> str:
    """``3 runs of other targets are left out``; empty where there are none."""
    if not others:
        return ""
    return f"{before}{count(others, 'run')} of other targets {verb(others, 'is', 'are')} left out"
