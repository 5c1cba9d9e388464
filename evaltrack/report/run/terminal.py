"""A run as text for a terminal. Rich leaves out colours where the output is not one.

No line begins with ``::`` out of foreign text: a CI runner would take it as a command.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console
from rich.table import Table
from rich.text import Text

from evaltrack.evaluation.result import RunResult
from evaltrack.records.amount import count
from evaltrack.report.words import (
    AIM_TITLES,
    aim_cells,
    cost_words,
    criterion_words,
    errors_words,
    first_errors,
    first_errors_words,
    group_metrics,
    headlines_first,
    judge_words,
    low_metrics,
    metric_number,
    metric_title,
    missed_words,
    model_words,
    one_line,
    questions_words,
)

SHOWN = 10


def print_run(result: RunResult, console: Console) -> None:
    """The metrics with their counts, the groups, the first misses and errors, and where the run stands in MLflow."""
    signature = result.signature
    head = f"{signature.golden}: {questions_words(result)}, target {signature.target}{model_words(signature)}"
    console.print(Text(_uncommanded(one_line(head, 700)), style="bold"), soft_wrap=True)
    for table in _tables(result):
        console.print(table)
    console.print(Text(one_line(judge_words(result), 300), style="dim"), soft_wrap=True)
    if cost := cost_words(result):
        console.print(Text(f"cost: {cost}", style="dim"), soft_wrap=True)
    for checked in result.criteria:
        style = {True: "green", False: "bold red", None: "yellow"}[checked.met]
        console.print(Text(criterion_words(checked), style=style))
    for note in result.notes:
        console.print(Text(_uncommanded(one_line(note, 300)), style="yellow"), soft_wrap=True)
    for hint in low_metrics(result.metrics, signature):
        console.print(Text(hint, style="yellow"), soft_wrap=True)
    _print_rows(result, console)
    console.print(Text(f"MLflow run {result.run_id} {result.status}"), soft_wrap=True)
    if result.serve_command:
        console.print(Text(f"to see it: {result.serve_command}"), soft_wrap=True)
    if result.link:
        console.print(Text(result.link), soft_wrap=True)


def _uncommanded(line: str) -> str:
    """The line, with a mark before what would make it a command."""
    return f"· {line}" if line.startswith((":", "#")) else line


def _tables(result: RunResult) -> Iterator[Table]:
    """The metrics, the aims of a run on reasoning, and the groups."""
    if result.metrics:
        yield _metrics(result)
    if result.aims:
        aims = _table(*AIM_TITLES)
        for cells in aim_cells(result):
            aims.add_row(*cells)
        yield aims
    if len(result.groups) > 1:
        yield _groups(result)


def _metrics(result: RunResult) -> Table:
    table = _table("metric", "value", "questions")
    for name, value in headlines_first(result.means):
        best = result.metrics.get(f"{name}.max")
        reach = f" of at most {metric_number(name, best)}" if best is not None else ""
        title, words = metric_title(name, result.signature.k), f"{metric_number(name, value)}{reach}"
        table.add_row(title, words, f"{result.counts[name]:,}")
    return table


def _groups(result: RunResult) -> Table:
    names = group_metrics(result)
    table = _table("group", *(metric_title(n, result.signature.k) for n in names))
    for group, metrics in list(result.groups.items())[: 2 * SHOWN]:
        cells = [f"{metric_number(n, metrics[n][0])} ({metrics[n][1]})" if n in metrics else "–" for n in names]
        table.add_row(Text(_uncommanded(one_line(group, 40))), *cells)
    if (more := len(result.groups) - 2 * SHOWN) > 0:
        table.add_row(Text(f"… {more:,} more"))
    return table


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column(first, no_wrap=True, overflow="ellipsis")  # a second line of a cell would begin with its text
    for name in others:
        table.add_column(name, justify="right")
    return table


def _print_rows(result: RunResult, console: Console) -> None:
    if result.missed:
        console.print(Text("did not pass:", style="dim"))
    for row in result.missed[:SHOWN]:
        words = f"{row.question.id}  {one_line(row.question.question, 70)}  ({missed_words(row, result.signature.k)})"
        console.print(Text(f"  {_uncommanded(one_line(words, 300))}"), soft_wrap=True)
    if len(result.missed) > SHOWN:
        console.print(Text("  … the run's per_question table holds them all", style="dim"))
    if result.errors:
        title = f"{errors_words(result.totals)}, of {count(result.totals['num_questions'], 'question')}"
        title += f"{first_errors_words(result)}:"
        console.print(Text(title, style="bold red"))
    for line in first_errors(result)[:SHOWN]:
        console.print(Text(f"  {line}"), soft_wrap=True)
