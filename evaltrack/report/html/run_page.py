"""A run as one self-contained page: how many passed, its metrics with their counts, and every question."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from evaltrack.evaluation.result import RunResult
from evaltrack.metrics.catalogue import HEADLINES, own_scores_of
from evaltrack.records import Signature
from evaltrack.records.amount import count
from evaltrack.records.stored_row import USAGE_PARTS, StoredRow
from evaltrack.report.html.page import (
    document,
    questions_script,
    render,
    safe_link,
    script_safe,
    shown,
    with_code,
    with_questions,
)
from evaltrack.report.html.question_parts import grade_titles, grades_in, score_scale
from evaltrack.report.html.questions import Group, fitted, group_badges, longest, run_questions
from evaltrack.report.words import (
    AIM_TITLES,
    FAILURES,
    aim_cells,
    clip,
    cost_words,
    criterion_words,
    errors_words,
    group_metrics,
    grouped_errors,
    judge_words,
    low_metrics,
    metric_number,
    metric_title,
    model_words,
    selection_words,
)
from evaltrack.stats.intervals import share_interval
from evaltrack.tracking.rows import SOURCE_FIELDS, names_to_read

if TYPE_CHECKING:
    from evaltrack.records.row import Traced

FIRST = tuple(score.metric for score in HEADLINES)
"""Shown large; the others stand in a table below."""

ORDER = ("error", "fail", "unmeasured", "pass")
LISTED = 10_000
MESSAGES, GROUPS = 10, 60
SAMPLED = 2_000
"""Questions that passed and are still listed where there are more than `LISTED` in all."""


Read = Callable[[list[str] | None, Collection[str] | None], Iterable[StoredRow]]
"""Rows in the order of the golden set: certain columns of them, of certain ids; None is all."""


@dataclass(frozen=True)
class Around:
    """What a page shows of a run besides its result: its name, which traces it has, who accepted what."""

    name: str
    traces: Traced = "off"
    trace_link: str | None = None
    accepted: Mapping[str, str] = field(default_factory=dict)
    num_rows: int | None = None
    """Rows that there are, where the result was read from an artifact."""


def run_html(result: RunResult, read: Read, around: Around, back: str = "") -> str:
    """The page, of a result and its rows; above `LISTED` questions a sample of those that passed is left.

    `back` is the address of the page of all, where this is one of several.
    """
    questions, grades = _choose_questions(result, read, around)
    golden = clip(result.signature.golden, 80)
    title = f"{run_headline(result)}: {golden}"
    head = {
        "title": shown(title, 200),
        "k": result.signature.k,
        "compared": False,
        "labels": [""],
        "traces": [safe_link(around.trace_link)],
        "causes": {},
        "grades": grade_titles(grades),
        **score_scale(result.signature),
        "groups": group_badges(question.group for question in questions),
    }
    data = with_questions(head, fitted(question.text for question in questions))
    return document(
        title,
        _body(result, questions, around, back),
        script=questions_script(),
        data=data,
    )


def run_fields(result: RunResult) -> dict[str, Any]:
    """What the page of a run and its first screen show alike."""
    return {
        "result": result,
        "kind": run_kind(result),
        "headline": run_headline(result),
        "asked": count(result.totals["num_questions"], "question"),
        "selection": selection_words(result.signature),
        "model": model_words(result.signature),
        "judge": clip(judge_words(result), 400),
        "cost": cost_words(result),
        "errors": errors_words(result.totals),
        "figures": [run_figure(result, name) for name in FIRST if name in result.metrics],
        "criteria": [(checked.met, criterion_words(checked)) for checked in result.criteria],
        "link": safe_link(result.link),
    }


def _body(result: RunResult, questions: list[_Listed], around: Around, back: str) -> str:
    others = [name for name in result.metrics if name in result.table.metrics and name not in FIRST]
    return render(
        "run.html",
        **run_fields(result),
        back=back,
        name=clip(around.name, 120),
        messages=_messages(questions),
        others=[run_figure(result, name) for name in others],
        aims=list(aim_cells(result)),
        aim_titles=AIM_TITLES,
        hints=list(low_metrics(result.metrics, result.signature)),
        groups=list(_groups(result)),
        hidden_groups=max(0, len(result.groups) - GROUPS),
        group_titles=[metric_title(name, result.signature.k) for name in group_metrics(result)],
        notes=[clip(note, 400) for note in result.notes],
        listed=_listed_words(questions, _num_rows(result, around)),
        first_failed=[(question.id, question.q, question.detail) for question in questions[:50]],
    )


class _Listed(NamedTuple):
    """A question that the page lists; `text` is all of it as JSON, in a fraction of the memory of its objects."""

    group: Group
    id: str
    q: str
    detail: str
    text: str


def _choose_questions(result: RunResult, read: Read, around: Around) -> tuple[list[_Listed], set[str]]:
    """The questions of the page: those that failed, did not pass, could not be measured, and passed.

    With them the names of the grades in their verdicts.
    """
    acceptances = {key: shown(words, 1200) for key, words in around.accepted.items()}
    total = _num_rows(result, around)
    ids = None if total <= LISTED else _listed_ids(read(["id", "passed", "error"], None))
    limit = longest(LISTED if ids else total)
    rows = read(_shown_columns(result.signature), ids)
    listed, grades = list[_Listed](), set[str]()
    for each in run_questions(rows, result.signature.k, limit, around.traces, result.run_id, acceptances):
        detail = each.get("detail", "")
        listed.append(_Listed(each["group"], each["id"], each.get("q", ""), detail, script_safe(each)))
        grades.update(grades_in(each))
    return sorted(listed, key=lambda question: ORDER.index(question.group)), grades


UNSHOWN = frozenset(
    {
        *("unmeasured", "retrieval_digest", "duplicates", "model", "seconds", "started_at", "traceback"),
        *("digest", "position", "trial", "tokens_known", *USAGE_PARTS),
    }
)
"""Columns that the page shows nothing of; of sources it shows no digests."""


def _shown_columns(signature: Signature) -> list[str]:
    """The columns that the page needs, with those of one's own scores."""
    own = tuple(score.name for score in own_scores_of(signature))
    return names_to_read(own, [name for name in SOURCE_FIELDS if name != "text_digest"], UNSHOWN)


def _messages(questions: list[_Listed]) -> list[str]:
    """The most frequent errors of the questions that the page lists, and how many others there are."""
    messages = grouped_errors((each.id, each.detail) for each in questions if each.group == "error")
    more = len(messages) - MESSAGES
    foreign = f" × {FAILURES['target_error']}: "  # what a target raised is none of our sentences
    shown_messages = (each if foreign in each else with_code(each) for each in messages[:MESSAGES])
    return [*shown_messages, *([f"… and {count(more, 'other message')}"] if more > 0 else [])]


def _num_rows(result: RunResult, around: Around) -> int:
    return result.totals["num_questions"] if around.num_rows is None else around.num_rows


def _listed_ids(rows: Iterable[StoredRow]) -> list[str]:
    """Of very many questions those that did not pass, and a sample of the others."""
    ids: dict[bool, list[str]] = defaultdict(list)
    room = {True: SAMPLED, False: LISTED - SAMPLED}
    for row in rows:
        passed = bool(row.passed) and not row.error
        if room[passed]:
            room[passed] -= 1
            ids[passed].append(row.id)
        elif not any(room.values()):
            break
    return ids[False] + ids[True]


def run_headline(result: RunResult) -> str:
    """How many passed, or why that cannot be said."""
    if result.status == "KILLED":
        return "Stopped before the end"
    if "pass_rate" not in result.metrics:
        return "Nothing could be measured"
    n = result.counts["pass_rate"]
    return f"{round(result.metrics['pass_rate'] * n):,} of {count(n, 'question')} passed"


def run_kind(result: RunResult) -> str:
    """How the result is to be taken: `ok`, `bad`, `warn`, or empty where nothing was required."""
    outcomes = [checked.met for checked in result.criteria]
    if result.status != "FINISHED" or result.totals["num_errors"] or None in outcomes:
        return "warn"
    return "bad" if False in outcomes else "ok" if outcomes else ""


def run_figure(result: RunResult, name: str) -> dict[str, Any]:
    """A metric of a run in words, with its interval and over how many questions it is."""
    value, n = result.metrics[name], result.counts[name]
    best = result.metrics.get(f"{name}.max")
    low, high = share_interval(value, n) if result.table.is_share(name) else (None, None)
    return {
        "title": metric_title(name, result.signature.k),
        "value": metric_number(name, value),
        "n": f"{n:,}",
        "best": None if best is None else metric_number(name, best),
        "interval": None
        if low is None or high is None
        else f"{metric_number(name, low)} to {metric_number(name, high)}",
    }


def _groups(result: RunResult) -> Iterator[dict[str, Any]]:
    names = group_metrics(result)
    spans = {name: result.table.by_metric[name].span for name in names}
    for group, metrics in list(result.groups.items())[:GROUPS]:
        yield {
            "name": clip(group, 60),
            "cells": [_cell(name, spans[name], *metrics[name]) if name in metrics else None for name in names],
        }


def _cell(name: str, span: float | None, mean: float, n: int) -> dict[str, Any]:
    share = mean / (span or 1)
    return {"value": metric_number(name, mean), "n": n, "width": f"{100 * min(max(share, 0.0), 1.0):.1f}"}


def _listed_words(questions: list[_Listed], total: int) -> str:
    if len(questions) == total:
        return f"All {count(total, 'question')}"
    missed = sum(question.group != "pass" for question in questions)
    which = "those" if missed < LISTED - SAMPLED else f"the first {missed:,}"
    return f"{len(questions):,} of {count(total, 'question')}: {which} that did not pass, and a sample of the others"
