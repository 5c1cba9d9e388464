"""Renders the ranking of a sweep's configurations as JSON, text, Markdown and HTML, and the dry run of a sweep."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import Any
from urllib.parse import quote

from rich.console import Console

from evaltrack.evaluation.ranking import ContenderMean, Group, Leaderboard, Standing
from evaltrack.evaluation.result import SweepResult
from evaltrack.evaluation.sweep import SweepPlan
from evaltrack.records.base import count
from evaltrack.report.escaping import json_without_commands, one_line, within
from evaltrack.report.html.page import document, render, safe_link, shown
from evaltrack.report.run_text import NOTE_LIMIT
from evaltrack.report.schemas.form import Form
from evaltrack.report.schemas.others import LeaderboardForm, PlanForm, PlannedConfiguration
from evaltrack.report.templates import descriptions, markdown, print_template, sentences
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


def _fields(board: Leaderboard) -> dict[str, Any]:
    """Return the table of a leaderboard and its notes, for all templates of texts."""
    groups = [
        (group_words(board, group), [(each, table_cells(board, group, each)) for each in group.standings])
        for group in board.groups
    ]
    return {"board": board, "titles": table_titles(board), "groups": groups, "notes": board_notes(board)}


def board_notes(board: Leaderboard) -> list[str]:
    """Return the notes on how to read the table, one sentence each."""
    ranked_by = "" if board.rank_by is None else title_of(board, board.rank_by)
    return sentences("leaderboard_notes.txt", board=board, ranked_by=ranked_by, spread_words=spread_words)


def leaderboard_json(result: SweepResult) -> Iterator[str]:
    """Yield the leaderboard as one JSON object."""
    yield _text(LeaderboardForm.of(result, **vars(result.leaderboard)))


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
    yield _text(planned(plan))


def _text(form: Form) -> str:
    return json_without_commands(json.dumps(form.data(), ensure_ascii=False, allow_nan=False, indent=1)) + "\n"


def leaderboard_markdown(board: Leaderboard, name: str) -> str:
    """Return the whole table with its notes."""
    return markdown().get_template("leaderboard.md").render(name=name, links={}, **_fields(board))


def leaderboard_note(result: SweepResult) -> str:
    """Return the lines of the table that fit MLflow's description of a run, with links relative to MLflow's UI."""
    links = {
        each.name: f"#/experiments/{result.experiment_id}/runs/{quote(each.contender.runs[0].run_id, safe='')}"
        for each in result.leaderboard.standings
    }
    template = descriptions().get_template("leaderboard.md")
    lines = template.render(name=result.name, links=links, **_fields(result.leaderboard)).rstrip("\n").split("\n")
    return within(lines, NOTE_LIMIT, "\n… the artifact leaderboard.html holds all\n")


def print_sweep(result: SweepResult, console: Console) -> None:
    """Print the table, its notes, and its address in MLflow."""
    print_template(console, "leaderboard.txt", made=result, **_fields(result.leaderboard))


def print_plan(plan: SweepPlan, console: Console) -> None:
    """Print the configurations of a sweep, and the number of calls they make."""
    print_template(console, "plan.txt", plan=planned(plan))


def leaderboard_html(board: Leaderboard, name: str) -> str:
    """Return the page of a leaderboard. It works from a file, and makes no request except for clicked links."""
    parts = leaderboard_parts(board, "Leaderboard")
    body = render("leaderboard.html", name=shown(name, 200), board=parts)
    return document(f"{name}: leaderboard", body)


def leaderboard_parts(board: Leaderboard, name: str) -> dict[str, Any]:
    """Return the fields of a leaderboard for the template of pages."""
    return {
        "name": shown(name, 200),
        "board": board,
        "titles": [title_of(board, metric) for metric in board.metrics],
        "cost": UNITS.get(board.cost_unit or "", ""),
        "blanks": len(board.metrics) + bool(board.metrics) + bool(board.cost_unit) + 3,
        "groups": [(group_words(board, group), group) for group in board.groups],
        "notes": board_notes(board),
        "written": {
            **{"number": number, "p": p_words, "seconds": seconds_words, "spread": spread_words},
            **{"cost": partial(cost_words, board), "difference": difference_words, "link": safe_link},
        },
    }
