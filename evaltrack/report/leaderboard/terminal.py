"""A sweep as text for a terminal: what it will do, and its leaderboard."""

from __future__ import annotations

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from evaltrack.evaluation.sweep_plan import SweepPlan
from evaltrack.evaluation.sweep_result import SweepResult
from evaltrack.records.amount import count
from evaltrack.report.leaderboard.words import board_notes, group_words, table_cells, table_titles
from evaltrack.report.words import one_line


def print_sweep(result: SweepResult, console: Console) -> None:
    """The table, how it is to be read, and where it stands in MLflow."""
    board = result.leaderboard
    titles = table_titles(board)
    lines: list[tuple[list[str], str]] = []
    for group in board.groups:
        if words := group_words(board, group):
            lines.append((["", words, *[""] * (len(titles) - 2)], "dim"))
        lines += [(table_cells(board, group, each), "") for each in group.standings]
    _print_table(titles, lines, console)
    for note in board_notes(board):
        console.print(Text(note, style="dim"), soft_wrap=True)
    for each in board.standings:
        if each.num_errors:
            words = f"In {one_line(each.name, 120)} {count(each.num_errors, 'question')} ended in errors"
            console.print(Text(words, style="bold red"), soft_wrap=True)
    for note in result.notes:
        console.print(Text(f"Note: {one_line(note, 300)}", style="yellow"), soft_wrap=True)
    reused = f", {result.reused} of them finished before" if result.reused else ""
    parent = f"MLflow run {result.run_id} {result.status}, the parent of {len(result.results)}{reused}"
    console.print(Text(parent), soft_wrap=True)
    for line in filter(None, (result.serve_command and f"to see it: {result.serve_command}", result.link)):
        console.print(Text(line), soft_wrap=True)


def print_plan(plan: SweepPlan, console: Console) -> None:
    """The configurations of a sweep, and how many calls they make."""
    lines = [
        ([str(place), one_line(each.label or plan.name, 120), *_calls(plan, place - 1)], "")
        for place, each in enumerate(plan.configurations, start=1)
    ]
    _print_table(["", "configuration", "target calls", "judge calls"], lines, console)
    target, judge = (sum(map(count, plan.configurations)) for count in (plan.target_calls, plan.judge_calls))
    runs = count(len(plan.configurations), "configuration")
    judged = f", judges at most {count(judge, 'time')}" if judge else ""
    asked = f"{runs} × {count(len(plan.golden), 'question')}: the target is called {count(target, 'time')}{judged}"
    console.print(Text(f"{asked}; nothing was run"), soft_wrap=True)


def _calls(plan: SweepPlan, place: int) -> list[str]:
    configuration = plan.configurations[place]
    return [f"{plan.target_calls(configuration):,}", f"{plan.judge_calls(configuration):,}"]


def _print_table(titles: list[str], lines: list[tuple[list[str], str]], console: Console) -> None:
    """The table in its whole width: a number that is cut says nothing."""
    widths = [max(map(cell_len, column)) for column in zip(titles, *(cells for cells, _ in lines), strict=True)]
    for cells, style in [(titles, "dim"), *lines]:
        padded = (_padded(cell, widths[place], left=place == 1) for place, cell in enumerate(cells))
        console.print(Text("  ".join(padded).rstrip(), style=style), soft_wrap=True)


def _padded(cell: str, width: int, *, left: bool) -> str:
    blanks = " " * (width - cell_len(cell))
    return cell + blanks if left else blanks + cell
