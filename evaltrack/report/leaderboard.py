"""Renders the ranking of a sweep's configurations as JSON, text, Markdown and HTML, and the dry run of a sweep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from rich.console import Console

from evaltrack.evaluation.ranking import Group, Leaderboard, Standing
from evaltrack.evaluation.result import SweepResult
from evaltrack.evaluation.sweep import SweepPlan
from evaltrack.records.base import count
from evaltrack.report.escaping import json_document, one_line, within
from evaltrack.report.html.page import document, render, shown
from evaltrack.report.run_text import NOTE_LIMIT
from evaltrack.report.schemas.others import LeaderboardForm, PlanForm, PlannedConfiguration
from evaltrack.report.templates import markdown, print_template, sentences
from evaltrack.report.words import METRIC_TITLES, number

NONE = "–"
LEAST_P = 0.001
UNITS = {"usd": "USD a question", "tokens": "tokens a question"}


def board_fields(board: Leaderboard) -> dict[str, Any]:
    """Return the table of a leaderboard and its notes, for all templates."""
    groups = [
        (_group_words(board, group), [(each, dict(_cells(board, group, each))) for each in group.standings])
        for group in board.groups
    ]
    titles = next((list(cells) for _, lines in groups for _, cells in lines), [])
    ranked_by = "" if board.rank_by is None else _title(board, board.rank_by)
    notes = sentences("leaderboard_notes.txt", board=board, ranked_by=ranked_by)
    return {"titles": titles, "groups": groups, "notes": notes}


def _cells(board: Leaderboard, group: Group, standing: Standing) -> Iterator[tuple[str, str]]:
    """Yield the title and the text of each cell of a line; a dash if a value was not measured."""
    yield "#", NONE if standing.rank is None else str(standing.rank)
    yield "configuration", one_line(standing.name, 120)
    for place, metric in enumerate(board.metrics):
        yield _title(board, metric), number(standing.means[metric].value) if metric in standing.means else NONE
        if place == 0:
            yield "difference, 95 %", _difference(group, standing, metric)
            yield "p", p_words(standing.p_value)
    if board.cost_unit:
        form = ",.1f" if board.cost_unit == "tokens" else ".6f"
        yield UNITS[board.cost_unit], NONE if standing.cost is None else f"{standing.cost:{form}}"
    if any(each.contender.seconds is not None for each in board.standings):
        seconds = standing.contender.seconds
        yield "s a question", NONE if seconds is None else f"{seconds:.3g}"


def _title(board: Leaderboard, metric: str) -> str:
    """Return the metric's title, with k if all configurations have the same k."""
    ks = {each.contender.run.signature.k for each in board.standings}
    return METRIC_TITLES.get(metric, metric).replace("{k}", str(ks.pop()) if len(ks) == 1 else "k")


def _difference(group: Group, standing: Standing, metric: str) -> str:
    """Return ``-0.012 [-0.05, +0.03]``, ``reference``, or the reason that there is no rank."""
    mean = standing.means.get(metric)
    if standing.why_unranked or standing.name == group.reference:
        return standing.why_unranked or "reference"
    if mean is None or mean.delta is None:
        return NONE
    between = f" [{mean.interval[0]:+.3f}, {mean.interval[1]:+.3f}]" if mean.interval else ""
    return f"{mean.delta:+.3f}{between}"


def p_words(p_value: float | None) -> str:
    """Return ``0.031`` or ``< 0.001``."""
    return NONE if p_value is None else f"< {LEAST_P:g}" if p_value < LEAST_P else f"{p_value:.3f}"


def _group_words(board: Leaderboard, group: Group) -> str:
    """Return the group's label and its number of questions; empty if there is only one group."""
    if len(board.groups) == 1:
        return ""
    return f"{one_line(group.label, 200)} ({count(group.num_questions, 'question')})"


def leaderboard_json(result: SweepResult) -> Iterator[str]:
    """Yield the leaderboard as one JSON object."""
    yield json_document(LeaderboardForm.of(result, **vars(result.leaderboard)).data())


def planned(plan: SweepPlan) -> PlanForm:
    """Return the plan of a sweep, with the most calls it makes."""
    configurations = [
        PlannedConfiguration.of(each, target_calls=plan.target_calls(each), judge_calls=plan.judge_calls(each))
        for each in plan.configurations
    ]
    return PlanForm(
        name=plan.name,
        golden=plan.golden.name,
        questions=len(plan.golden),
        target_calls=sum(each.target_calls for each in configurations),
        judge_calls=sum(each.judge_calls for each in configurations),
        configurations=configurations,
    )


def plan_json(plan: SweepPlan) -> Iterator[str]:
    """Yield the plan of a sweep as one JSON object."""
    yield json_document(planned(plan).data())


def leaderboard_note(result: SweepResult) -> str:
    """Return the table as Markdown for MLflow's description of a run, with links relative to MLflow's UI.

    Lines that do not fit are left out.
    """
    links = {
        each.name: f"#/experiments/{result.experiment_id}/runs/{quote(each.contender.run.run_id, safe='')}"
        for each in result.leaderboard.standings
    }
    template = markdown().get_template("leaderboard.md")
    text = template.render(name=result.name, links=links, **board_fields(result.leaderboard))
    return within(text.rstrip("\n").split("\n"), NOTE_LIMIT, "\n… the artifact leaderboard.html holds all\n")


def print_sweep(result: SweepResult, console: Console) -> None:
    """Print the table, its notes, and its address in MLflow."""
    print_template(console, "leaderboard.txt", made=result, **board_fields(result.leaderboard))


def print_plan(plan: SweepPlan, console: Console) -> None:
    """Print the configurations of a sweep, and the number of calls they make."""
    print_template(console, "plan.txt", plan=planned(plan))


def leaderboard_html(board: Leaderboard, name: str) -> str:
    """Return the page of a leaderboard. It works from a file, and makes no request except for clicked links."""
    body = render("leaderboard.html", name=shown(name, 200), **board_fields(board))
    return document(f"{name}: leaderboard", body)
