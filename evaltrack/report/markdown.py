"""A run as Markdown: the description that MLflow shows on the run's page."""

from __future__ import annotations

import re
from collections.abc import Iterator

from evaltrack.report.words import (
    GROUP_METRICS,
    cost_words,
    criterion_words,
    judge_words,
    low_metrics,
    metric_title,
    missed_words,
    number,
    one_line,
)
from evaltrack.result import METRICS, RunResult

SHOWN = 10


def run_note(result: RunResult) -> str:
    """A short report: what was evaluated, the metrics with their counts, the groups, the first misses and errors."""
    return (
        "\n".join([*_head(result), "", *_metrics(result), *_groups(result), *_misses(result), *_errors(result)]) + "\n"
    )


def plain(text: str, limit: int = 160) -> str:
    """Foreign text as text: on one line, bounded, with everything Markdown or HTML would read escaped."""
    line = one_line(text, limit).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    line = re.sub(r"([\\`*_{}\[\]()#+!|~:@-])", r"\\\1", line)
    return re.sub(r"^(\d+)\.", r"\1\\.", line)


def _head(result: RunResult) -> Iterator[str]:
    totals, signature = result.totals, result.signature
    yield f"### evaltrack: {plain(signature.golden)}, k = {signature.k}"
    yield ""
    asked = f"{totals['num_questions']} questions ({totals['num_negatives']} negatives)"
    yield f"Target `{signature.target.replace('`', '')}` on {asked}."
    if totals["num_errors"]:
        yield f"**{totals['num_errors']} of them failed and are in no mean.**"
    yield ""
    yield plain(judge_words(result), 400)
    if cost := cost_words(result):
        yield f"\nCost: {cost}."
    for note in result.notes:
        yield f"\n{plain(note, 400)}"
    for checked in result.criteria:
        yield f"\n- {plain(criterion_words(checked))}"
    if result.status == "KILLED":
        yield "**Stopped before the end: these are the questions that were done.**"


def _metrics(result: RunResult) -> Iterator[str]:
    k = result.signature.k
    yield "| metric | value | questions |"
    yield "| --- | ---: | ---: |"
    for name, value in result.metrics.items():
        if name not in METRICS and name != "combined_score_best":
            continue
        best = result.metrics.get(f"{name}.max")
        reach = f" (at most {number(best)})" if best is not None else ""
        yield f"| {metric_title(name, k)} | {number(value)}{reach} | {result.counts[name]} |"
    for hint in low_metrics(result.metrics, k):
        yield f"\n{hint}"


def _groups(result: RunResult) -> Iterator[str]:
    names = [n for n in GROUP_METRICS if any(n in m for m in result.groups.values())]
    if not names:
        return
    yield ""
    yield "| group | " + " | ".join(metric_title(n, result.signature.k) for n in names) + " |"
    yield "| --- |" + " ---: |" * len(names)
    for group, metrics in result.groups.items():
        cells = [f"{number(metrics[n][0])} ({metrics[n][1]})" if n in metrics else "–" for n in names]
        yield f"| {plain(group)} | " + " | ".join(cells) + " |"


def _misses(result: RunResult) -> Iterator[str]:
    if result.missed:
        yield from ("", "**Did not pass**", "")
    for row in result.missed[:SHOWN]:
        why = plain(missed_words(row, result.signature.k))
        yield f"- {plain(row.question.id)}: {plain(row.question.question)} ({why})"
    yield from _more(len(result.missed))


def _errors(result: RunResult) -> Iterator[str]:
    if result.errors:
        yield from ("", "**Failed**", "")
    for row in result.errors[:SHOWN]:
        yield f"- {plain(row.question.id)}: {plain(str(row.failure))}"
    yield from _more(len(result.errors))


def _more(found: int) -> Iterator[str]:
    if found > SHOWN:
        yield "- … the table `per_question.json` holds them all"
