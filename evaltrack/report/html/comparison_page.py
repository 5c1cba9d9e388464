"""A comparison as one self-contained page: the verdict, what it rests on, and every question that changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evaltrack.compare.comparison import Comparison, GroupDelta, MetricDelta
from evaltrack.report.comparison.counts import counts_words, flips_words
from evaltrack.report.comparison.differences import difference_words
from evaltrack.report.comparison.group_words import group_flips, shown_groups
from evaltrack.report.comparison.notes import note_words
from evaltrack.report.comparison.verdict_words import verdict_words
from evaltrack.report.comparison.words import (
    both_words,
    cause_summary,
    clip,
    count,
    criteria_words,
    delta_words,
    drop_words,
    interval_words,
    reason_words,
    run_words,
    sides_words,
)
from evaltrack.report.html.culprits import culprit_lines
from evaltrack.report.html.fitting import fitted
from evaltrack.report.html.page import Back, document, static, templates, with_questions
from evaltrack.report.html.past import past_lines
from evaltrack.report.html.plots import Way, interval_plot, reach
from evaltrack.report.html.questions import cause_names, changed_questions, group_badges
from evaltrack.report.html.text import safe_link
from evaltrack.report.words import low_metrics, metric_title, number
from evaltrack.scoring.metrics import HEADLINES

KINDS = {"ok": "ok", "regression": "bad", "unknown": "warn"}
FIRST = tuple(score.metric for score in HEADLINES)
"""Shown large; the others stand in a table below."""

GROUPS = 60


def comparison_html(comparison: Comparison, back: Back | None = None) -> str:
    """The page: it works from a file, makes no request, and shows foreign text as text."""
    from markupsafe import Markup

    golden = clip(comparison.candidate.signature.golden, 80)
    questions = list(changed_questions(comparison))
    body = (
        templates()
        .get_template("comparison.html")
        .render(
            made=comparison,
            back=back,
            kind=KINDS[comparison.verdict],
            verdict=verdict_words(comparison),
            sides=sides_words(comparison),
            differences=difference_words(comparison),
            reasons=list(reason_words(comparison)),
            summary=cause_summary(comparison),
            counts=counts_words(comparison),
            flips=flips_words(comparison),
            figures=[comparison_figure(comparison, metric) for metric in comparison.metrics if metric.name in FIRST],
            others=[comparison_figure(comparison, metric) for metric in comparison.metrics if metric.name not in FIRST],
            criteria=[(pair[1].met, criteria_words(pair)) for pair in comparison.criteria],
            hints=list(_hints(comparison)),
            culprits=culprit_lines(comparison),
            groups=[group for group in _groups(comparison) if group["first"]],
            more_groups=[group for group in _groups(comparison) if not group["first"]],
            group_titles=[metric_title(name, _k(comparison)) for name in _group_metrics(comparison)],
            notes=[clip(note, 400) for note in note_words(comparison)],
            runs=[(side, run_words(run), safe_link(run.link), run) for side, run in _runs(comparison)],
            compare_link=safe_link(comparison.compare_link),
            past=past_lines(comparison.history, comparison.candidate.run_id),
            listed=_listed_words(comparison, len(questions)),
            first_changes=[
                (clip(flip.id, 80), clip(flip.question), clip(flip.cause.detail, 300)) for flip in comparison.flips[:50]
            ],
            markup=Markup,
        )
    )
    return document(
        f"{verdict_words(comparison)}: {golden}", body, script=static("report.js"), data=_data(comparison, questions)
    )


def _data(comparison: Comparison, questions: list[dict[str, Any]]) -> str:
    head = {
        "k": _k(comparison),
        "compared": True,
        "labels": ["Baseline", "Candidate"],
        "alike": "Candidate" if comparison.left_out else "Both runs",
        "groups": group_badges(question["group"] for question in questions),
        "traces": [safe_link(run.trace_link) for _, run in _runs(comparison)],
        "causes": cause_names(question.get("cause", "") for question in questions),
    }
    return with_questions(head, fitted(questions))


def _k(comparison: Comparison) -> int:
    return comparison.candidate.signature.k


def _runs(comparison: Comparison) -> Iterator[tuple[str, Any]]:
    yield "Baseline", comparison.baseline
    yield "Candidate", comparison.candidate


def _hints(comparison: Comparison) -> Iterator[str]:
    values = {metric.name: metric.candidate for metric in comparison.metrics}
    most = {f"{metric.name}.max": metric.reachable for metric in comparison.metrics if metric.reachable is not None}
    return low_metrics(values | most, comparison.candidate.signature)


def comparison_figure(comparison: Comparison, metric: MetricDelta) -> dict[str, Any]:
    """A metric on both sides, in words and as a plot."""
    way, interval = _way(comparison, metric), interval_words(metric)
    return {
        "title": metric_title(metric.name, _k(comparison)),
        "was": number(metric.baseline),
        "now": number(metric.candidate),
        "delta": delta_words(metric) if metric.delta else "no change",
        "share": drop_words(metric).strip(),
        "way": way,
        "interval": interval,
        "plot": interval_plot(metric, reach([metric]), way) if interval else "",
        "on": both_words(metric) if metric.partial or comparison.verdict == "unknown" else f"n {metric.n:,}",
        "metric": metric,
        "tolerated": str(metric.threshold) if metric.threshold else "",
    }


def _way(comparison: Comparison, metric: MetricDelta) -> Way:
    """Whether it got better or worse, as far as that may be said; of an unknown verdict, or of a part, neither."""
    if not metric.delta or not metric.shows_change or (comparison.verdict == "unknown" and not metric.regressed):
        return "same"
    return "better" if (metric.delta > 0) == metric.higher_is_better else "worse"


def _group_metrics(comparison: Comparison) -> list[str]:
    _, measured = shown_groups(comparison)
    own = comparison.candidate.signature.own_names
    return [name for name in (*FIRST, *own) if name in measured]


def _groups(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """Each group with a plot for each metric; one axis for all plots of a metric, the worst first."""
    groups, _ = shown_groups(comparison)
    names = _group_metrics(comparison)
    most = {name: reach([m for group in groups for m in group.metrics if m.name == name]) for name in names}
    kinds = {group.kind for group in groups}
    first = "domain" if "domain" in kinds else "difficulty"
    for group in sorted(groups, key=_badness)[:GROUPS]:
        metrics = {metric.name: metric for metric in group.metrics}
        yield {
            "kind": group.kind,
            "first": group.kind == first or any(metric.regressed for metric in group.metrics),
            "name": clip(group.name, 60),
            "n": count(group.num_questions, "question"),
            "flips": group_flips(group) if comparison.passing_compared else "",
            "lost": group.pass_to_fail,
            "cells": [_cell(comparison, metrics.get(name), most[name]) for name in names],
        }


def _badness(group: GroupDelta) -> tuple[int, bool, float]:
    order = {"domain": 0, "difficulty": 1, "category": 2}
    worst = min((metric.delta for metric in group.metrics), default=0.0)
    return order[group.kind], not any(metric.regressed for metric in group.metrics), worst


def _cell(comparison: Comparison, metric: MetricDelta | None, most: float) -> dict[str, Any] | None:
    if metric is None:
        return None
    way = _way(comparison, metric)
    return {
        "plot": interval_plot(metric, most, way) if metric.shows_change else "",
        "now": number(metric.candidate),
        "delta": delta_words(metric) if metric.delta else "=",
        "way": way,
        "n": metric.n,
        "regressed": metric.regressed,
    }


def _listed_words(comparison: Comparison, num_listed: int) -> str:
    """How many of the questions the page holds."""
    total = comparison.num_common
    if num_listed >= total:
        return f"All {count(total, 'common question')}"
    short = [
        f"{len(changes):,} of {comparison.count(fate):,} {fate}"
        for fate, changes in (*comparison.by_fate.items(), ("identical", comparison.same))
        if comparison.count(fate) > len(changes)
    ]
    return f"{num_listed:,} of {total:,} common questions, the worst first: {', '.join(['all others', *short])}"
