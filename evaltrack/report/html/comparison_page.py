"""Renders a comparison as one self-contained page: the verdict, its reasons, and every question that changed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from evaltrack.compare.change import CAUSES
from evaltrack.compare.comparison import Comparison, GroupDelta, MetricDelta
from evaltrack.metrics.catalogue import HEADLINES
from evaltrack.records.amount import count
from evaltrack.report.comparison_summary import (
    change_sentence,
    count_parts,
    fates_legend,
    riser_words,
    worse_sentence,
)
from evaltrack.report.comparison_text import fields_of_comparison
from evaltrack.report.comparison_words import (
    MEANINGS,
    group_flips,
    group_metrics,
    group_regressed,
    run_words,
    shown_groups,
    verdict_words,
    way_of,
)
from evaltrack.report.escaping import clip
from evaltrack.report.gate_words import reasons
from evaltrack.report.html.first_screen import (
    culprit_lines,
    difference_lines,
    document_views,
    first_screen,
    more_culprits,
)
from evaltrack.report.html.page import (
    document,
    questions_script,
    render,
    safe_link,
    script_safe,
    shown,
    with_questions,
)
from evaltrack.report.html.plots import axis_legend, axis_reach, metric_rows
from evaltrack.report.html.question_parts import grade_titles, grades_in, score_scale
from evaltrack.report.html.questions import cause_names, changed_questions, fitted, group_badges, score_titles
from evaltrack.report.html.run_page import first_listed
from evaltrack.report.words import failure_words, low_metrics, metric_change, metric_number, metric_title

TEXTS, DOMAINS = 2, 12


def cause_views(comparison: Comparison) -> list[dict[str, Any]]:
    """Return all causes, the most frequent first: code, words, count, and the first questions."""
    worse, views = comparison.worse, []
    for kind, number in sorted(comparison.causes.items(), key=lambda item: -item[1]):
        title = CAUSES[kind].title
        words = f"{title[:1].upper()}{title[1:]}{riser_words(comparison, kind)}"
        questions = [(shown(e.id, 200), shown(e.question, 160)) for e in worse if e.cause.kind == kind][:TEXTS]
        more = number - len(questions)
        views.append({"code": kind, "words": words, "count": number, "questions": questions, "more": more})
    return views


def _flipped(comparison: Comparison) -> list[GroupDelta]:
    """Return the domains in which a question broke or was fixed, the worst first."""
    domains = [group for group in shown_groups(comparison) if group.kind == "domain"]
    return [each for each in domains if each.pass_to_fail or each.fail_to_pass] if comparison.passing_compared else []


def _place(group: GroupDelta, most: int) -> dict[str, Any]:
    """Return one domain: its pass rate on both sides, and its bars."""
    rate = next((metric for metric in group.metrics if metric.name == "pass_rate"), None)
    return {
        "name": clip(group.name, 40),
        "was": metric_number("pass_rate", rate.baseline) if rate else "–",
        "now": metric_number("pass_rate", rate.candidate) if rate else "–",
        "worse": group.pass_to_fail > group.fail_to_pass,
        "broke": group.pass_to_fail,
        "fixed": group.fail_to_pass,
        "most": most,
    }


FIRST = tuple(score.metric for score in HEADLINES)
"""Metrics that share one axis on the first screen. The others are in a table below."""

GROUPS = 60


def comparison_html(comparison: Comparison) -> str:
    """Return the page. It works from a file, makes no request, and shows foreign text as text."""
    questions = list(changed_questions(comparison))
    fields = {**_first_fields(comparison), **_later_fields(comparison)}
    body = render(
        "comparison.html",
        listed=_listed_words(comparison, len(questions)),
        first_changes=[
            (clip(flip.id, 80), clip(flip.question), clip(failure_words(flip.cause.detail), 300))
            for flip in comparison.flips[:50]
        ],
        **fields,
    )
    return document(_title(comparison), body, script=questions_script(), data=_data(comparison, questions))


def _title(comparison: Comparison) -> str:
    return f"{verdict_words(comparison)}: {clip(comparison.candidate.signature.golden, 80)}"


def _first_fields(comparison: Comparison) -> dict[str, Any]:
    """Return the fields above the questions."""
    first = [metric for metric in comparison.metrics if metric.name in FIRST or metric.regressed]
    return {
        "verdict": verdict_words(comparison),
        "changed": change_sentence(comparison),
        "told": fields_of_comparison(comparison),
        "first": first_screen(comparison),
        "compare_link": safe_link(comparison.compare_link),
        "rows": metric_rows(comparison, first),
        "reach": axis_reach(first),
        "axis_legend": axis_legend(first),
        "common": count(comparison.num_common, "common question"),
        "counts": count_parts(comparison),
        "legend": fates_legend(comparison),
        "outcomes": comparison.outcomes,
        "lost": comparison.count("lost"),
        "causes": cause_views(comparison),
        "worse": worse_sentence(comparison),
        **_places_and_pages(comparison),
    }


def _places_and_pages(comparison: Comparison) -> dict[str, Any]:
    """Return the domains and pages that got worse, and the number of each that is left out."""
    flipped, culprits, documents = _flipped(comparison), culprit_lines(comparison), document_views(comparison)
    most = max((max(group.pass_to_fail, group.fail_to_pass) for group in flipped[:DOMAINS]), default=0)
    num_documents = sum(culprit.page is not None for culprit in comparison.culprits)
    return {
        "places": [_place(group, most) for group in flipped[:DOMAINS]],
        "more_places": len(flipped[DOMAINS:]),
        "culprits": culprits,
        "more_culprits": more_culprits(comparison),
        "documents": documents,
        "more_documents": num_documents - len(documents),
    }


def _later_fields(comparison: Comparison) -> dict[str, Any]:
    """Return the fields below the questions."""
    others = [metric for metric in comparison.metrics if metric.name not in FIRST and not metric.regressed]
    return {
        "others": metric_rows(comparison, others),
        "others_reach": axis_reach(others),
        "hints": list(_hints(comparison)),
        "groups": [group for group in _groups(comparison) if group["first"]],
        "more_groups": [group for group in _groups(comparison) if not group["first"]],
        "hidden_groups": max(0, len(shown_groups(comparison)) - GROUPS),
        "group_titles": [metric_title(name, _k(comparison)) for name in _group_metrics(comparison)],
        "runs": [(side, run_words(run), safe_link(run.link), run) for side, run in _runs(comparison)],
        "differences": difference_lines(comparison),
    }


def _data(comparison: Comparison, questions: list[dict[str, Any]]) -> str:
    meanings = {str(fate): meaning for fate, meaning in MEANINGS.items()}
    head = {
        "title": shown(_title(comparison), 200),
        "k": _k(comparison),
        "compared": True,
        "labels": ["Baseline", "Now"],
        "alike": "Now" if comparison.left_out else "Both runs",
        "groups": {
            group: (name, tone, meanings.get(name, ""))
            for group, (name, tone) in group_badges(question["group"] for question in questions).items()
        },
        "traces": [safe_link(run.trace_link) for _, run in _runs(comparison)],
        "moves": score_titles((each for changes in comparison.by_fate.values() for each in changes), _k(comparison)),
        **score_scale(comparison.candidate.signature),
        "causes": cause_names(question.get("cause", "") for question in questions),
        "grades": grade_titles(name for question in questions for name in grades_in(question)),
    }
    return with_questions(head, fitted(map(script_safe, questions)))


def _k(comparison: Comparison) -> int:
    return comparison.candidate.signature.k


def _runs(comparison: Comparison) -> Iterator[tuple[str, Any]]:
    yield "Baseline", comparison.baseline
    yield "Candidate", comparison.candidate


def _hints(comparison: Comparison) -> Iterator[str]:
    values = {metric.name: metric.candidate for metric in comparison.metrics}
    most = {f"{metric.name}.max": metric.reachable for metric in comparison.metrics if metric.reachable is not None}
    return low_metrics(values | most, comparison.candidate.signature)


def _group_metrics(comparison: Comparison) -> list[str]:
    own = comparison.candidate.signature.own_names
    return [name for name in (*FIRST, *own) if name in group_metrics(shown_groups(comparison))]


def _groups(comparison: Comparison) -> Iterator[dict[str, Any]]:
    groups, names = shown_groups(comparison), _group_metrics(comparison)
    first = "domain" if any(group.kind == "domain" for group in groups) else "difficulty"
    for group in groups[:GROUPS]:
        metrics = {metric.name: metric for metric in group.metrics}
        yield {
            "kind": group.kind,
            "first": group.kind == first or group_regressed(group),
            "name": clip(group.name, 60),
            "n": count(group.num_questions, "question"),
            "flips": group_flips(group) if comparison.passing_compared else "",
            "lost": group.pass_to_fail,
            "cells": [_cell(comparison, metrics.get(name)) for name in names],
        }


def _cell(comparison: Comparison, metric: MetricDelta | None) -> dict[str, Any] | None:
    if metric is None:
        return None
    change = metric_change(metric.name, metric.delta) if metric.delta else "="
    return {
        "now": metric_number(metric.name, metric.candidate),
        "delta": change if metric.shows_change else "",
        "way": way_of(comparison, metric),
        "n": metric.n,
        "regressed": metric.regressed,
    }


def _listed_words(comparison: Comparison, num_listed: int) -> str:
    total = comparison.num_common
    if num_listed >= total:
        return f"All {count(total, 'common question')}"
    short = [
        f"{len(changes):,} of {comparison.count(fate):,} {fate}"
        for fate, changes in (*comparison.by_fate.items(), ("identical", comparison.same))
        if comparison.count(fate) > len(changes)
    ]
    return f"{num_listed:,} of {total:,} common questions, the worst first: {', '.join(['all others', *short])}"


# For notebooks

SCREEN = 10
"""Broken questions that the first screen lists."""


def comparison_screen(comparison: Comparison) -> str:
    """Return the first screen: verdict and reasons, main metrics, and the broken questions with their causes."""
    main = [metric for metric in comparison.metrics if metric.name in FIRST or metric.regressed]
    return render(
        "comparison_screen.html",
        told=fields_of_comparison(comparison),
        reasons=reasons(comparison) if comparison.verdict != "ok" else [],
        rows=metric_rows(comparison, main),
        questions=[
            (flip.id, clip(flip.question), clip(failure_words(flip.cause.detail), 300))
            for flip in comparison.flips[:SCREEN]
        ],
        listed=first_listed(min(len(comparison.flips), SCREEN), comparison.count("broke"), "broke"),
        link=safe_link(comparison.compare_link),
    )
