"""A leaderboard as Markdown: an artifact, and the description of the parent run of a sweep."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from urllib.parse import quote

from evaltrack.compare.leaderboard import Leaderboard
from evaltrack.evaluation.sweep_result import SweepResult
from evaltrack.report.leaderboard.words import board_notes, group_words, table_cells, table_titles
from evaltrack.report.run.markdown import NOTE_LIMIT, described, plain


def leaderboard_markdown(board: Leaderboard, name: str) -> str:
    """The whole table with its notes."""
    return "\n".join(_lines(board, name, plain)) + "\n"


def _quoted(run_id: str | None) -> str:
    return quote(run_id or "", safe="", errors="replace")


def leaderboard_note(result: SweepResult) -> str:
    """As much of the table as MLflow's description of a run holds, with links relative to MLflow's UI."""
    links = {
        each.name: f"#/experiments/{result.experiment_id}/runs/{_quoted(each.contender.runs[0].run_id)}"
        for each in result.leaderboard.standings
    }
    note, rest = "", "\n… the artifact leaderboard.html holds all\n"
    for line in _lines(result.leaderboard, result.name, described, links):
        if len(note) + len(line) + len(rest) > NOTE_LIMIT:
            return note + rest
        note += line + "\n"
    return note


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
