"""Several golden sets in one table, for a terminal and as the description of their parent run; and as JSON."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evaltrack.evaluation.result import RunResult, SetResults
from evaltrack.metrics.catalogue import HEADLINES
from evaltrack.records.amount import count
from evaltrack.report.run.json_form import run_json
from evaltrack.report.run.markdown import plain
from evaltrack.report.words import metric_number, metric_title, one_line

MEANS = tuple(score.metric for score in HEADLINES)
"""The metrics of the table; one that no set measured is left out."""

NOTE_SETS = 40
"""Sets in the description of the parent run: MLflow holds 8,000 characters of it."""


def sets_json(sets: SetResults) -> Iterator[str]:
    """One JSON object in pieces: under `sets` the object of each run as `run_json` gives it."""
    yield '{"sets": ['
    for place, result in enumerate(sets.results):
        yield ",\n" if place else "\n"
        yield from run_json(result)
    yield "]}\n"


def print_sets(sets: SetResults, console: Console) -> None:
    """A line for each golden set, what is worth knowing of each, and where they stand in MLflow."""
    titles, lines = sets_table(sets)
    table = Table(box=None, pad_edge=False, header_style="dim")
    for place, title in enumerate(titles):
        width = max(len(cells[place]) for cells in [titles, *lines])  # a number that is cut says nothing
        table.add_column(title, justify="right" if place else "left", no_wrap=True, min_width=width)
    for cells in lines:
        table.add_row(*(Text(cell) for cell in cells))
    console.print(table, crop=False)
    for result in sets.results:
        for note in result.notes:
            words = f"{one_line(result.signature.golden, 80)}: {one_line(note, 300)}"
            console.print(Text(words, style="yellow"), soft_wrap=True)
    console.print(Text(f"MLflow run {sets.run_id} {sets.status}, the parent of {len(sets.results)}"), soft_wrap=True)
    for line in filter(None, (sets.serve_command and f"to see it: {sets.serve_command}", sets.link)):
        console.print(Text(line), soft_wrap=True)


def sets_note(sets: SetResults) -> str:
    """The table as Markdown, each set with a link to its run, relative to MLflow's UI."""
    titles, lines = sets_table(sets)
    note = [f"### {count(len(sets.results), 'golden set')}", "", f"| {' | '.join(titles)} |"]
    note.append("| --- |" + " ---: |" * (len(titles) - 1))
    for result, cells in list(zip(sets.results, lines, strict=True))[:NOTE_SETS]:
        run = f"#/experiments/{result.experiment_id}/runs/{result.run_id}"
        note.append(f"| {plain(cells[0], 80)} | {' | '.join(cells[1:-1])} | [{cells[-1]}]({run}) |")
    if len(lines) > NOTE_SETS:
        note.append(f"\n… and {len(lines) - NOTE_SETS:,} more")
    return "\n".join(note) + "\n"


def sets_table(sets: SetResults) -> tuple[list[str], list[list[str]]]:
    """Titles, and for each set its cells: how many were asked, means, errors, and the run.

    A mean that is not of all questions has its count behind it.
    """
    names = [name for name in MEANS if any(name in result.metrics for result in sets.results)]
    k = max((result.signature.k for result in sets.results), default=0)
    titles = ["golden set", "asked", *(metric_title(name, k) for name in names), "errors"]
    titles += ["run"] if sets.success else ["status", "run"]
    return titles, [_cells(result, names, with_status=not sets.success) for result in sets.results]


def _cells(result: RunResult, names: list[str], *, with_status: bool) -> list[str]:
    totals, part = result.totals, result.signature.selection
    asked = f"{totals['num_questions']:,}" + (f" of {part.total:,}" if part else "")
    cells = [one_line(result.signature.golden, 80), asked, *(_mean(result, name) for name in names)]
    return [*cells, f"{totals['num_errors']:,}", *[result.status] * with_status, result.run_id[:8]]


def _mean(result: RunResult, name: str) -> str:
    if name not in result.metrics:
        return "–"
    count = result.counts[name]
    part = f" ({count:,})" if count != result.totals["num_questions"] else ""
    return f"{metric_number(name, result.metrics[name])}{part}"
