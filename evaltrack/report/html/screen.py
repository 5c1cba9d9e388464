"""The first screen of a report as a piece of HTML for notebooks: no script, no request, foreign text as text."""

from __future__ import annotations

from collections.abc import Iterator

from evaltrack.compare.comparison import Comparison
from evaltrack.evaluation.result import RunResult
from evaltrack.records import Row
from evaltrack.records.amount import count
from evaltrack.report.comparison.counts import counts_words
from evaltrack.report.comparison.culprit_words import behind_line, several_causes
from evaltrack.report.comparison.headline import verdict_sentence
from evaltrack.report.comparison.rules import reasons, reruns_words
from evaltrack.report.comparison.words import TONES, criteria_words, sides_words
from evaltrack.report.html.comparison_page import FIRST
from evaltrack.report.html.page import render, safe_link
from evaltrack.report.html.plots import axis_reach, metric_rows
from evaltrack.report.html.run_page import run_fields
from evaltrack.report.words import (
    clip,
    failure_words,
)

LISTED = 10
"""Questions that are listed: those that failed or broke."""


def run_screen(result: RunResult) -> str:
    """The first screen of a run: how many passed, its main metrics, and the first questions that did not pass."""
    questions = list(_questions(result))
    n = result.counts.get("pass_rate", 0)
    num_missed = result.totals["num_errors"] + n - round(result.metrics.get("pass_rate", 0) * n)
    return render(
        "run_screen.html",
        **run_fields(result),
        questions=questions,
        listed=_listed(len(questions), num_missed, "did not pass"),
        notes=_notes(result),
    )


def _listed(num_listed: int, total: int, what: str) -> str:
    """``First 10 of 24 questions that broke``, or ``Questions that broke`` where they are all of them."""
    return (
        f"First {num_listed} of {count(total, 'question')} that {what}"
        if total > num_listed
        else f"Questions that {what}"
    )


def _notes(result: RunResult) -> list[str]:
    """The first of them, and how many are left out."""
    notes = [clip(note, 400) for note in result.notes[:LISTED]]
    return [*notes, *([f"… and {count(more, 'more note')}"] if (more := len(result.notes) - LISTED) > 0 else [])]


def _questions(result: RunResult) -> Iterator[tuple[str, str, str]]:
    """Id, question and reason of the first rows that failed or did not pass."""
    rows: list[Row] = [*result.errors, *result.missed][:LISTED]
    for row in rows:
        yield row.question.id, clip(row.question.question), str(row.failure) if row.failure else "did not pass"


def comparison_screen(comparison: Comparison) -> str:
    """The first screen of a comparison: the verdict and its reasons, the main metrics, and what broke, with causes."""
    main = [metric for metric in comparison.metrics if metric.name in FIRST]
    return render(
        "comparison_screen.html",
        made=comparison,
        kind=TONES[comparison.verdict],
        verdict=verdict_sentence(comparison),
        behind=behind_line(comparison),
        sides=sides_words(comparison),
        reasons=reasons(comparison) if comparison.verdict != "ok" else [],
        summary=several_causes(comparison),
        counts=counts_words(comparison),
        reruns=reruns_words(comparison),
        rows=metric_rows(comparison, main, axis_reach(main)),
        criteria=[(pair[1].met, criteria_words(pair)) for pair in comparison.criteria],
        questions=[
            (flip.id, clip(flip.question), clip(failure_words(flip.cause.detail), 300))
            for flip in comparison.flips[:LISTED]
        ],
        listed=_listed(min(len(comparison.flips), LISTED), comparison.count("broke"), "broke"),
        link=safe_link(comparison.compare_link),
    )
