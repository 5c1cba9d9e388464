"""Renders the runs or the comparisons of several golden sets as one table: text, Markdown, HTML and JSON."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from rich.console import Console

from evaltrack.compare.change import Fate
from evaltrack.compare.comparison import EXIT_CODES, ComparedSet, Comparison, SetComparisons
from evaltrack.evaluation.result import RunResult, SetResults
from evaltrack.records.base import count
from evaltrack.records.row import failure_words
from evaltrack.report.comparison_words import TONES, VERDICT_TITLES, next_steps, reasons
from evaltrack.report.escaping import json_document, one_line
from evaltrack.report.html.page import document, render
from evaltrack.report.run_text import run_json
from evaltrack.report.schemas.comparison import MissingComparison, comparison_json
from evaltrack.report.templates import markdown, print_template, printed, say
from evaltrack.report.words import COMPARED, HEADLINE_METRICS, metric_change, metric_number, metric_title

NOTE_SETS = 40
"""Sets in the description of the parent run: MLflow stores 8,000 characters of it."""


def sets_json(sets: SetResults) -> Iterator[str]:
    """Yield one JSON object in pieces. `sets` holds the object of each run from `run_json`."""
    yield '{"sets": ['
    for place, result in enumerate(sets.results):
        yield ",\n" if place else "\n"
        yield from run_json(result)
    yield "]}\n"


def print_sets(sets: SetResults, console: Console) -> None:
    """Print a line for each golden set, the notes of each, and their address in MLflow."""
    print_template(console, "sets.txt", made=sets, rows=sets_table(sets.results))


def sets_note(sets: SetResults) -> str:
    """Return the table as Markdown. Each set has a link to its run, relative to MLflow's UI."""
    return markdown().get_template("sets.md").render(sets=sets, shown=NOTE_SETS, rows=sets_table(sets.results))


def sets_table(results: Sequence[RunResult]) -> list[list[str]]:
    """Return the titles, and a row of cells for each run: golden set, number of questions, means, errors, and run.

    A mean over only some of the questions is followed by their number.
    """
    names = [name for name in HEADLINE_METRICS if any(name in result.metrics for result in results)]
    k = max((result.signature.k for result in results), default=0)
    with_status = not all(result.success for result in results)
    titles = ["golden set", "asked", *(metric_title(name, k) for name in names), "errors"]
    titles += ["status", "run"] if with_status else ["run"]
    return [titles, *(_run_cells(result, names, with_status=with_status) for result in results)]


def _run_cells(result: RunResult, names: list[str], *, with_status: bool) -> list[str]:
    totals, part = result.totals, result.signature.selection
    asked = f"{totals['num_questions']:,}" + (f" of {part.total:,}" if part else "")
    cells = [one_line(result.signature.golden, 80), asked, *(_mean(result, name) for name in names)]
    return [*cells, f"{totals['num_errors']:,}", *[result.status] * with_status, result.run_id[:8]]


def _mean(result: RunResult, name: str) -> str:
    if name not in result.metrics:
        return "–"
    number = result.counts[name]
    part = f" ({number:,})" if number != result.totals["num_questions"] else ""
    return f"{metric_number(name, result.metrics[name])}{part}"


# Comparisons

FLIPS: tuple[Fate, ...] = ("broke", "fixed")
STYLES = {"ok": "green", "bad": "bold red", "warn": "yellow"}


def sets_json_text(made: SetComparisons) -> str:
    """Return one JSON object. `comparisons` holds the object of each set from `comparison_json`.

    The object of a set that could not be compared has only `schema`, `golden`, `verdict`, `headline`, `exit_code` and
    `reasons`.
    """
    comparisons = [comparison_json(each.comparison) if each.comparison else _without(each) for each in made.sets]
    return json_document({"comparisons": comparisons})


def _without(each: ComparedSet) -> dict[str, Any]:
    code, headline = EXIT_CODES[each.verdict], VERDICT_TITLES[each.verdict]
    return MissingComparison.of(each, exit_code=code, headline=headline, reasons=[each.problem]).data()


def print_set_comparisons(made: SetComparisons, console: Console) -> None:
    """Print a line for each golden set, the reasons of verdicts that are not ok, and the parts not compared."""
    styles = ["dim", *(STYLES[TONES[each.verdict]] for each in made.sets)]
    print_template(console, "compared_sets.txt", styles=styles, **_fields(made))


def sets_markdown(made: SetComparisons) -> str:
    """Return the same table and reasons as Markdown."""
    return markdown().get_template("compared_sets.md").render(_fields(made)).rstrip() + "\n"


QUESTIONS = 10
"""Broken questions of each set that are listed."""


def _fields(made: SetComparisons) -> dict[str, Any]:
    of_verdict = sum(each.verdict == made.verdict for each in made.sets)
    share = "" if of_verdict == len(made.sets) else f"{of_verdict:,} of "
    return {
        "headline": f"{VERDICT_TITLES[made.verdict]} in {share}{count(len(made.sets), 'golden set')}",
        "rows": comparisons_table(made),
        "sets": list(map(_told, made.sets)),
    }


def _told(each: ComparedSet) -> dict[str, Any]:
    """Return the reasons of a verdict that is not ok, the main cause, the next step, and the questions that broke.

    A verdict on only a part is said in any case.
    """
    made = each.comparison
    if made is None:
        return {"golden": each.golden, "lines": [each.problem], "broke": [], "more": 0}
    words = say.verdict(made)
    lines = [words] if words != VERDICT_TITLES[each.verdict] else []
    if each.verdict != "ok":
        lines += [*reasons(made), *filter(None, [say.cause(made)]), *next_steps(made)[:1]]
    broke = [(each.id, each.question, failure_words(each.cause.detail)) for each in made.flips[:QUESTIONS]]
    return {"golden": each.golden, "lines": lines, "broke": broke, "more": len(made.flips) - len(broke)}


def sets_text(made: SetComparisons) -> str:
    """Return the text of the terminal."""
    return printed(partial(print_set_comparisons, made), 120)


def compared_sets_html(made: SetComparisons, pages: Sequence[str]) -> str:
    """Return the page of several comparisons; `pages` are the addresses of the page of each."""
    told = _fields(made)
    tones = [TONES[each.verdict] for each in made.sets]
    linked = [page if each.comparison else "" for each, page in zip(made.sets, pages, strict=True)]
    fields = {"tone": TONES[made.verdict], "tones": tones, "pages": linked}
    return document(told["headline"], render("compared_sets.html", **fields, **told))


def page_names(goldens: Iterable[str]) -> list[str]:
    """Return a different file name for each golden set."""
    names = (re.sub(r"[^\w.-]+", "-", golden)[:80] for golden in goldens)
    return [f"{number}-{name}" for number, name in enumerate(names, 1)]


def comparisons_table(made: SetComparisons) -> list[list[str]]:
    """Return the titles, and a row of cells for each set: verdict, common questions, flips, lost, and metrics."""
    compared = [each.comparison for each in made.sets if each.comparison]
    names = [name for name in COMPARED if any(metric.name == name for each in compared for metric in each.metrics)]
    k = max((each.candidate.signature.k for each in compared), default=0)
    titles = ["golden set", "verdict", "common", "broke", "fixed", "lost", *(metric_title(each, k) for each in names)]
    return [[*titles, "run"], *(_compared_cells(each, names) for each in made.sets)]


def _compared_cells(each: ComparedSet, names: list[str]) -> list[str]:
    made, head = each.comparison, [one_line(each.golden, 80), VERDICT_TITLES[each.verdict]]
    if made is None:
        return [*head, *["–"] * (5 + len(names))]
    part = made.candidate.signature.selection
    common = f"{made.num_common:,}" + (f" of {part.total:,}" if part else "")
    flips = [f"{made.count(fate):,}" if made.passing_compared else "–" for fate in FLIPS]
    moved = [_moved(made, name) for name in names]
    return [*head, common, *flips, f"{made.count('lost'):,}", *moved, made.candidate.run_id[:8]]


def _moved(comparison: Comparison, name: str) -> str:
    """Return the value of a metric and its change: ``0.750 (−0.053)``."""
    metric = next((metric for metric in comparison.metrics if metric.name == name), None)
    if metric is None:
        return "–"
    now, change = metric_number(name, metric.candidate), metric_change(name, metric.delta)
    return f"{now} ({change})" if metric.delta and metric.shows_change else now
