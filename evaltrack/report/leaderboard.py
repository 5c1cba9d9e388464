"""Renders a leaderboard as JSON, text, Markdown and HTML, and the plan of a sweep."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from typing import Any
from urllib.parse import quote

from rich.console import Console

from evaltrack.compare.ranking import ContenderMean, Group, Leaderboard, Standing
from evaltrack.evaluation.result import SweepResult
from evaltrack.evaluation.sweep import SweepPlan
from evaltrack.records.amount import count
from evaltrack.report.escaping import described, json_without_commands, one_line, plain, within
from evaltrack.report.html.page import document, render, safe_link, shown
from evaltrack.report.run_text import NOTE_LIMIT
from evaltrack.report.schemas.others import LeaderboardForm, PlannedConfiguration, RankedConfiguration, RankedGroup
from evaltrack.report.templates import columns, print_lines
from evaltrack.report.words import METRIC_TITLES, number

NONE = "–"
LEAST_P = 0.001
UNITS = {"usd": "USD a question", "tokens": "tokens a question"}


def title_of(board: Leaderboard, metric: str) -> str:
    """Return the metric's title, with k if all configurations have the same k."""
    ks = {run.signature.k for each in board.standings for run in each.contender.runs}
    return METRIC_TITLES.get(metric, metric).replace("{k}", str(ks.pop()) if len(ks) == 1 else "k")


def table_titles(board: Leaderboard) -> list[str]:
    """Return the titles of the columns."""
    titles = ["#", "configuration"]
    for place, metric in enumerate(board.metrics):
        titles.append(title_of(board, metric))
        titles += ["difference, 95 %", "p"] if place == 0 else []
    titles += [UNITS[board.cost_unit]] if board.cost_unit else []
    titles += ["s a question"] if _timed(board) else []
    return titles


def table_cells(board: Leaderboard, group: Group, standing: Standing) -> list[str]:
    """Return the cells of one line; a dash if a value was not measured."""
    cells = [NONE if standing.rank is None else str(standing.rank), one_line(standing.name, 120)]
    for place, metric in enumerate(board.metrics):
        mean = standing.means.get(metric)
        cells.append(NONE if mean is None else number(mean.value))
        cells += [against_words(group, standing, mean), p_words(standing.p_value)] if place == 0 else []
    cells += [cost_words(board, standing)] if board.cost_unit else []
    return cells + ([seconds_words(standing.contender.seconds)] if _timed(board) else [])


def _timed(board: Leaderboard) -> bool:
    return any(each.contender.seconds is not None for each in board.standings)


def against_words(group: Group, standing: Standing, mean: ContenderMean | None) -> str:
    """Return ``-0.012 [-0.05, +0.03]``, ``reference``, or the reason that there is no rank."""
    if standing.why_unranked:
        return standing.why_unranked
    if standing.name == group.reference:
        return "reference"
    return NONE if mean is None else difference_words(mean)


def difference_words(mean: ContenderMean) -> str:
    """Return ``-0.012 [-0.05, +0.03]``; a dash if there is no difference."""
    if mean.delta is None:
        return NONE
    between = f" [{mean.interval[0]:+.3f}, {mean.interval[1]:+.3f}]" if mean.interval else ""
    return f"{mean.delta:+.3f}{between}"


def p_words(p_value: float | None) -> str:
    """Return ``0.031`` or ``< 0.001``."""
    return NONE if p_value is None else f"< {LEAST_P:g}" if p_value < LEAST_P else f"{p_value:.3f}"


def cost_words(board: Leaderboard, standing: Standing) -> str:
    """Return the cost of one question."""
    if standing.cost is None:
        return NONE
    return f"{standing.cost:,.1f}" if board.cost_unit == "tokens" else f"{standing.cost:.6f}"


def seconds_words(seconds: float | None) -> str:
    """Return ``0.120``; times below 0.001 s have two significant digits."""
    return NONE if seconds is None else f"{seconds:.3f}" if seconds >= 0.001 else f"{seconds:.2g}"


def spread_words(standing: Standing) -> str:
    """Return ``0.71 to 0.75 over 3 seeds``; empty for one seed."""
    if standing.spread is None:
        return ""
    low, high = map(number, standing.spread)
    return f"{low} to {high} over {count(len(standing.contender.runs), 'seed')}"


def group_words(board: Leaderboard, group: Group) -> str:
    """Return the group's label and its number of questions; empty if there is only one group."""
    if len(board.groups) == 1:
        return ""
    return f"{one_line(group.label, 200)} ({count(group.num_questions, 'question')})"


def board_notes(board: Leaderboard) -> Iterator[str]:
    """Yield the notes on how to read the table, one sentence each."""
    if board.rank_by is None:
        yield "Nothing was measured."
        return
    over = f", over {count(board.groups[0].num_questions, 'question')}" if len(board.groups) == 1 else ""
    better = "highest" if board.higher_is_better else "lowest"
    those = over or ", in each group over the questions"
    yield f"Ranked by {title_of(board, board.rank_by)}, {better} first{those} that every ranked configuration measured."
    if board.tests:
        whole = "all pairs, because the data chose the best" if board.reference == "best" else "all configurations"
        yield (
            f"Differences are to the {board.reference} of each group; each interval is for a single difference, "
            f"p is exact and corrected for {count(board.tests, 'test')} (Holm: {whole})."
        )
    if len(board.groups) > 1:
        metric = title_of(board, board.rank_by)
        yield f"Groups measured {metric} in different ways, and are not compared with each other."
    for each in board.standings:
        if words := spread_words(each):
            yield f"Seeds of {one_line(each.name, 120)}: {words}."


LEADERBOARD_SCHEMA = "evaltrack.leaderboard/1"
PLAN_SCHEMA = "evaltrack.sweep-plan/1"


def leaderboard_json(result: SweepResult) -> Iterator[str]:
    """Yield the leaderboard as one JSON object."""
    board = result.leaderboard
    groups = [
        RankedGroup.of(group, configurations=[_standing(each) for each in group.standings]) for group in board.groups
    ]
    yield _text(LeaderboardForm.of(result, schema=LEADERBOARD_SCHEMA, **vars(board) | {"groups": groups}))


def plan_json(plan: SweepPlan) -> Iterator[str]:
    """Yield the plan of a sweep as one JSON object."""
    configurations = [
        PlannedConfiguration.of(
            each,
            name=each.label,
            target=each.target_name,
            k=each.settings.k,
            settings=dict(each.axes),
            target_calls=plan.target_calls(each),
            judge_calls=plan.judge_calls(each),
        )
        for each in plan.configurations
    ]
    totals = {name: sum(each[name] for each in configurations) for name in ("target_calls", "judge_calls")}
    head = {"schema": PLAN_SCHEMA, "name": plan.name, "golden": plan.golden.name, "questions": len(plan.golden)}
    yield _text(head | totals | {"configurations": configurations})


def _standing(standing: Standing) -> dict[str, Any]:
    return RankedConfiguration.of(
        standing,
        settings=standing.contender.settings,
        metrics={name: asdict(mean) for name, mean in standing.means.items()},
        seconds=standing.contender.seconds,
        seconds_p95=standing.contender.seconds_p95,
        runs=[run.run_id for run in standing.contender.runs],
    )


def _text(value: dict[str, Any]) -> str:
    return json_without_commands(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1)) + "\n"


def leaderboard_markdown(board: Leaderboard, name: str) -> str:
    """Return the whole table with its notes."""
    return "\n".join(_lines(board, name, plain)) + "\n"


def _quoted(run_id: str) -> str:
    return quote(run_id, safe="", errors="replace")


def leaderboard_note(result: SweepResult) -> str:
    """Return the lines of the table that fit MLflow's description of a run, with links relative to MLflow's UI."""
    links = {
        each.name: f"#/experiments/{result.experiment_id}/runs/{_quoted(each.contender.runs[0].run_id)}"
        for each in result.leaderboard.standings
    }
    lines = _lines(result.leaderboard, result.name, described, links)
    return within(lines, NOTE_LIMIT, "\n… the artifact leaderboard.html holds all\n")


def _lines(
    board: Leaderboard, name: str, escaped: Callable[[str, int], str], links: dict[str, str] | None = None
) -> Iterator[str]:
    titles = table_titles(board)
    yield f"### {escaped(name, 160)}"
    yield ""
    yield f"| {' | '.join(titles)} |"
    yield "| ---: | --- |" + " ---: |" * (len(titles) - 2)
    for group in board.groups:
        if words := group_words(board, group):
            yield f"| | **{escaped(words, 240)}** |" + " |" * (len(titles) - 2)
        for standing in group.standings:
            rank, configuration, *others = table_cells(board, group, standing)
            shown = escaped(configuration, 160)
            shown = f"[{shown}]({links[standing.name]})" if links else shown
            yield f"| {rank} | {shown} | {' | '.join(escaped(each, 80) for each in others)} |"
    yield ""
    for note in board_notes(board):
        yield f"- {escaped(note, 700)}"


def print_sweep(result: SweepResult, console: Console) -> None:
    """Print the table, its notes, and its address in MLflow."""
    board = result.leaderboard
    titles = table_titles(board)
    lines = [("dim", titles)]
    for group in board.groups:
        if words := group_words(board, group):
            lines.append(("dim", ["", words, *[""] * (len(titles) - 2)]))
        lines += [("", table_cells(board, group, each)) for each in group.standings]
    shown = [*_table_lines(lines), *(("dim", note) for note in board_notes(board))]
    for each in board.standings:
        if each.num_errors:
            words = f"In {one_line(each.name, 120)} {count(each.num_errors, 'question')} ended in errors"
            shown.append(("bold red", words))
    shown += [("yellow", f"Note: {one_line(note, 300)}") for note in result.notes]
    reused = f", {result.reused} of them finished before" if result.reused else ""
    shown.append(("", f"MLflow run {result.run_id} {result.status}, the parent of {len(result.results)}{reused}"))
    shown.append(("", f"to see it: {result.serve_command}" if result.serve_command else ""))
    print_lines(console, [(f"copy {style}", line) for style, line in (*shown, ("", result.link or ""))])


def print_plan(plan: SweepPlan, console: Console) -> None:
    """Print the configurations of a sweep, and the number of calls they make."""
    lines = [("dim", ["", "configuration", "target calls", "judge calls"])]
    for place, each in enumerate(plan.configurations, start=1):
        calls = f"{plan.target_calls(each):,}", f"{plan.judge_calls(each):,}"
        lines.append(("", [str(place), one_line(each.label or plan.name, 120), *calls]))
    target, judge = (sum(map(calls, plan.configurations)) for calls in (plan.target_calls, plan.judge_calls))
    runs = count(len(plan.configurations), "configuration")
    judged = f", judges at most {count(judge, 'time')}" if judge else ""
    asked = f"{runs} × {count(len(plan.golden), 'question')}: the target is called {count(target, 'time')}{judged}"
    shown = [*_table_lines(lines), ("", f"{asked}; nothing was run")]
    print_lines(console, [(f"copy {style}", line) for style, line in shown])


def _table_lines(lines: Sequence[tuple[str, list[str]]]) -> Iterator[tuple[str, str]]:
    """Yield the lines of a table whose second column is a name."""
    cells = columns([(each[1], each[0], *each[2:]) for _, each in lines])
    for (style, _), (name, place, *others) in zip(lines, cells, strict=True):
        yield style, "  ".join((place, name, *others))


def leaderboard_html(board: Leaderboard, name: str) -> str:
    """Return the page of a leaderboard. It works from a file, and makes no request except for clicked links."""
    parts = leaderboard_parts(board, "Leaderboard")
    body = render("leaderboard.html", name=shown(name, 200), board=parts)
    return document(f"{name}: leaderboard", body)


def leaderboard_parts(board: Leaderboard, name: str) -> dict[str, Any]:
    """Return the fields of a leaderboard for the template."""
    return {
        "name": shown(name, 200),
        "titles": [title_of(board, metric) for metric in board.metrics],
        "cost": UNITS.get(board.cost_unit or "", ""),
        "blanks": len(board.metrics) + bool(board.metrics) + bool(board.cost_unit) + 3,
        "groups": [_group(board, group) for group in board.groups],
        "notes": [shown(note, 700) for note in board_notes(board)],
    }


def _group(board: Leaderboard, group: Group) -> dict[str, Any]:
    return {"words": group_words(board, group), "lines": [_line(board, group, each) for each in group.standings]}


def _line(board: Leaderboard, group: Group, standing: Standing) -> dict[str, Any]:
    run = standing.contender.runs[0]
    return {
        "rank": NONE if standing.rank is None else str(standing.rank),
        "name": shown(standing.name, 160),
        "link": safe_link(run.link),
        "run": shown(run.run_id[:8], 8),
        "why": standing.why_unranked,
        "is_reference": standing.name == group.reference,
        "spread": spread_words(standing),
        "cells": [_cell(standing, metric) for metric in board.metrics],
        "p": p_words(standing.p_value),
        "cost": cost_words(board, standing),
        "seconds": seconds_words(standing.contender.seconds),
        "p95": seconds_words(standing.contender.seconds_p95),
        "errors": f"{standing.num_errors:,}",
    }


def _cell(standing: Standing, metric: str) -> dict[str, str] | None:
    mean = standing.means.get(metric)
    if mean is None:
        return None
    return {"value": number(mean.value), "n": f"{mean.n:,}", "difference": difference_words(mean)}
