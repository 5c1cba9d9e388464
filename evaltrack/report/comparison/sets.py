"""Several comparisons in one table, for a terminal and as Markdown; and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evaltrack.compare.change import Fate
from evaltrack.compare.comparison import EXIT_CODES, ComparedSet, Comparison, SetComparisons
from evaltrack.metrics.catalogue import HEADLINES
from evaltrack.records.amount import count
from evaltrack.report.ci_commands import json_without_commands
from evaltrack.report.comparison.json_form import COMPARISON_SCHEMA, comparison_json
from evaltrack.report.comparison.rules import reasons
from evaltrack.report.comparison.words import TONES, VERDICTS, Tone, delta_words, verdict_words
from evaltrack.report.github_markdown import inert
from evaltrack.report.words import clip, metric_course, metric_title

METRICS = tuple(score.metric for score in HEADLINES if score.name != "pass")
"""The metrics of the table; one that no set compares is left out."""

FLIPS: tuple[Fate, ...] = ("broke", "fixed")
STYLES: dict[Tone, str] = {"ok": "green", "bad": "bold red", "warn": "yellow"}


def sets_json_text(made: SetComparisons) -> str:
    """One JSON object: under `comparisons` the object of each set as `comparison_json` gives it.

    Of a set that could not be compared it holds `schema`, `golden`, `verdict`, `headline`, `exit_code` and `reasons`.
    """
    comparisons = [comparison_json(each.comparison) if each.comparison else _without(each) for each in made.sets]
    text = json.dumps({"comparisons": comparisons}, ensure_ascii=False, allow_nan=False, indent=2)
    return json_without_commands(text) + "\n"


def _without(each: ComparedSet) -> dict[str, Any]:
    return {
        "schema": COMPARISON_SCHEMA,
        "golden": each.golden,
        "verdict": each.verdict,
        "headline": VERDICTS[each.verdict],
        "exit_code": EXIT_CODES[each.verdict],
        "reasons": [each.problem],
    }


def print_set_comparisons(made: SetComparisons, console: Console) -> None:
    """A line for each golden set, and the reasons of each verdict that is not ok, or not of the whole set."""
    titles, lines = comparisons_table(made)
    table = Table(box=None, pad_edge=False, header_style="dim")
    for place, title in enumerate(titles):
        width = max(len(cells[place]) for cells in [titles, *lines])  # a number that is cut says nothing
        table.add_column(title, justify="right" if place > 1 else "left", no_wrap=True, min_width=width)
    for each, cells in zip(made.sets, lines, strict=True):
        tone = TONES[each.verdict]
        verdict = Text(cells[1], style=STYLES[tone])
        table.add_row(Text(cells[0]), verdict, *(Text(cell) for cell in cells[2:]))
    console.print(table, crop=False)
    for line in _reasons(made):
        console.print(Text(line), soft_wrap=True)


def sets_markdown(made: SetComparisons) -> str:
    """The same as Markdown."""
    titles, lines = comparisons_table(made)
    page = [f"### evaltrack: {VERDICTS[made.verdict]} in {count(len(made.sets), 'golden set')}", ""]
    page += [f"| {' | '.join(titles)} |", "| --- | --- |" + " ---: |" * (len(titles) - 2)]
    page += [f"| {' | '.join(inert(cell) for cell in cells)} |" for cells in lines]
    page += ["", *(f"- {inert(line, 400)}" for line in _reasons(made))]
    return "\n".join(page).rstrip() + "\n"


def comparisons_table(made: SetComparisons) -> tuple[list[str], list[list[str]]]:
    """Titles, and for each set its cells: verdict, common questions, flips both ways, and how each metric moved."""
    compared = [each.comparison for each in made.sets if each.comparison]
    names = [name for name in METRICS if any(name in _names(each) for each in compared)]
    k = max((each.candidate.signature.k for each in compared), default=0)
    titles = ["golden set", "verdict", "common", "broke", "fixed", "lost", *(metric_title(each, k) for each in names)]
    return [*titles, "run"], [_cells(each, names) for each in made.sets]


def _names(comparison: Comparison) -> set[str]:
    return {metric.name for metric in comparison.metrics}


def _cells(each: ComparedSet, names: list[str]) -> list[str]:
    made, head = each.comparison, [clip(each.golden, 80), VERDICTS[each.verdict]]
    if made is None:
        return [*head, *["–"] * (5 + len(names))]
    part = made.candidate.signature.selection
    common = f"{made.num_common:,}" + (f" of {part.total:,}" if part else "")
    flips = [f"{made.count(fate):,}" if made.passing_compared else "–" for fate in FLIPS]
    moved = [_moved(made, name) for name in names]
    return [*head, common, *flips, f"{made.count('lost'):,}", *moved, made.candidate.run_id[:8]]


def _moved(comparison: Comparison, name: str) -> str:
    """What a metric is now and by how much it moved: ``0.750 (-0.053)``."""
    metric = next((metric for metric in comparison.metrics if metric.name == name), None)
    if metric is None:
        return "–"
    delta = delta_words(metric) if metric.delta else ""
    now = metric_course(name, metric.baseline, metric.candidate)[1]
    return now + (f" ({delta})" if delta else "")


def _reasons(made: SetComparisons) -> Iterator[str]:
    """The reasons of each verdict that is not ok, and what an ok is about where that is not all."""
    for each in made.sets:
        lines: Iterable[str] = [clip(each.problem, 400)]
        if each.comparison:
            words = verdict_words(each.comparison)
            lines = [words] if words != VERDICTS[each.verdict] else []
            lines += reasons(each.comparison) if each.verdict != "ok" else ()
        yield from (f"{clip(each.golden, 80)}: {line}" for line in lines)
