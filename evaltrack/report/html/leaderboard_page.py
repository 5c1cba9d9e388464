"""A leaderboard as a page, and as a part of the page of several runs."""

from __future__ import annotations

from typing import Any

from evaltrack.compare.leaderboard import Group, Leaderboard, Standing
from evaltrack.report.html.page import document, templates
from evaltrack.report.html.text import safe_link, shown
from evaltrack.report.leaderboard.words import (
    NONE,
    UNITS,
    board_notes,
    cost_words,
    difference_words,
    group_words,
    p_words,
    seconds_words,
    spread_words,
    title_of,
)
from evaltrack.report.words import number


def leaderboard_html(board: Leaderboard, name: str) -> str:
    """The page of a leaderboard; it works from a file and makes no request but for what is clicked."""
    parts = leaderboard_parts(board, "Leaderboard")
    body = templates().get_template("leaderboard.html").render(name=shown(name, 200), board=parts)
    return document(f"{name}: leaderboard", body)


def leaderboard_parts(board: Leaderboard, name: str) -> dict[str, Any]:
    """What the template shows of a leaderboard."""
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
        "run": shown((run.run_id or "")[:8], 8),
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
