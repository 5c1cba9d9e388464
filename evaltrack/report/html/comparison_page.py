"""Renders a comparison as one HTML page (verdict, causes, changed questions), and as text for notebooks."""

from __future__ import annotations

from datetime import UTC, datetime
from html import escape
from typing import Any

from evaltrack.compare.comparison import Comparison, MetricDelta
from evaltrack.compare.culprits import DocumentPart, changed_parts
from evaltrack.records.run import OWN_PARAM, PACKAGES, Run
from evaltrack.report.comparison_text import comparison_text
from evaltrack.report.escaping import one_line
from evaltrack.report.html.page import (
    document,
    questions_script,
    render,
    shown,
)
from evaltrack.report.html.plots import metric_rows
from evaltrack.report.html.questions import BADGES, changed_questions, page_data, score_titles
from evaltrack.report.templates import say
from evaltrack.report.text_diff import Piece, condensed, word_diff
from evaltrack.report.words import HEADLINE_METRICS

READ = 50
"""Questions that are shown without JavaScript."""

CULPRITS = 8
"""Culprits that are shown, those with the most questions."""


def comparison_html(comparison: Comparison) -> str:
    """Return the page. It works from a file, makes no request, and shows foreign text as text."""
    questions, main = list(changed_questions(comparison)), _main_metrics(comparison)
    culprits = comparison.culprits[:CULPRITS]
    body = render(
        "comparison.html",
        c=comparison,
        questions=questions[:READ],
        num_listed=len(questions),
        badges=BADGES,
        rows=metric_rows(comparison, main),
        others=metric_rows(comparison, [metric for metric in comparison.metrics if metric not in main]),
        documents=list(zip(culprits, changed_parts(comparison, culprits), strict=True)),
        worse={change.id: change.question for change in comparison.worse},
        part_pieces=_part_pieces,
        started=_started,
        same_settings=_same_settings(comparison),
    )
    return document(_title(comparison), body, script=questions_script(), data=_data(comparison, questions))


def _main_metrics(comparison: Comparison) -> list[MetricDelta]:
    return [metric for metric in comparison.metrics if metric.name in HEADLINE_METRICS or metric.regressed]


def _part_pieces(part: DocumentPart) -> list[Piece]:
    """Return the word diff of a chunk."""
    was, now = (shown(text, 20_000) for text in (part.before, part.after))
    return list(condensed(word_diff(was, now), context=200, longest=2_000, total=6_000))


def _title(comparison: Comparison) -> str:
    return f"{say.verdict(comparison)}: {one_line(comparison.candidate.signature.golden, 80)}"


def _started(run: Run) -> str:
    """Return the time at which a run started; empty if it is not known."""
    return datetime.fromtimestamp(run.started_at / 1000, UTC).strftime("%Y-%m-%d %H:%M") if run.started_at else ""


def _same_settings(comparison: Comparison) -> list[tuple[str, str]]:
    was, now = map(_settings, (comparison.baseline, comparison.candidate))
    return [(name, value) for name, value in was.items() if value == now.get(name)]


def _settings(run: Run) -> dict[str, str]:
    """Return the settings without the packages, and of the signature what a run without settings states."""
    signature = run.signature
    stated = {"target": signature.target, "model": signature.model, "judge": signature.judge, "k": str(signature.k)}
    settings = {name.removeprefix(OWN_PARAM): value for name, value in run.settings.items() if name != PACKAGES}
    return stated | settings


def _data(comparison: Comparison, questions: list[dict[str, Any]]) -> str:
    return page_data(
        _title(comparison),
        comparison.candidate.signature,
        (run.trace_link for run in (comparison.baseline, comparison.candidate)),
        questions,
        compared=True,
        labels=["Before", "Now"],
        alike="Now" if comparison.left_out else "Both runs",
        moves=score_titles(comparison.listed, comparison.candidate.signature.k),
        todos={say.culprit_name(culprit): say.todo(culprit) for culprit in comparison.culprits},
    )


def comparison_screen(comparison: Comparison) -> str:
    """Return the terminal's text of a comparison as HTML, for notebooks."""
    return f'<pre style="white-space: pre-wrap">{escape(comparison_text(comparison, 100, everything=False))}</pre>'
