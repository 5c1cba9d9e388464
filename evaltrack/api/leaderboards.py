"""Runs of one golden set as a leaderboard and a matrix of questions, from what MLflow holds."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evaltrack.api.compare_sides import columns_of_run, info_of_run
from evaltrack.compare.leaderboard import Contender, Leaderboard, ReferenceKind
from evaltrack.compare.outcomes import OutcomeMatrix, outcome_matrix
from evaltrack.compare.ranking import rank
from evaltrack.evaluation.result import RunResult
from evaltrack.rows.reader import stored_rows
from evaltrack.tracking.reader import find_evaluation
from evaltrack.tracking.store import Store
from evaltrack.tracking.stored_rows import ROWS

MATRIX_QUESTIONS, MATRIX_CELLS = 1000, 40_000
"""Questions, and cells, that a page lists at most."""


@dataclass(frozen=True)
class Line:
    """One line of a leaderboard to be: a configuration with the result of each of its runs."""

    name: str
    results: Sequence[RunResult]
    settings: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Standings:
    """A leaderboard, and the matrix of its runs in the order of the lines."""

    leaderboard: Leaderboard
    matrix: OutcomeMatrix
    runs: tuple[str, ...]


def standings_of(
    store: Store, lines: Sequence[Line], rank_by: str = "", reference: ReferenceKind = "best"
) -> Standings:
    """The leaderboard of several configurations, from the rows of their runs.

    Raises:
        UsageError: there is no such metric.
        TrackingError: the store does not answer, or the rows of a run are gone or damaged.
    """
    with tempfile.TemporaryDirectory(prefix="evaltrack-") as folder:
        contenders = [_contender(store, line, Path(folder)) for line in lines]
        board = rank(contenders, rank_by, reference)
        columns = [frame for each in contenders for frame in each.columns]
        most = min(MATRIX_QUESTIONS, max(1, MATRIX_CELLS // max(1, len(columns))))
        matrix = outcome_matrix(columns, most)
        ids = [result.run_id for line in lines for result in line.results]
        names = tuple(
            line.name if len(line.results) == 1 else f"{line.name} ({place})".strip()
            for line in lines
            for place, _ in enumerate(line.results, start=1)
        )
        texts = _texts([Path(folder) / each / ROWS for each in ids], {row.id for row in matrix.rows})
        return Standings(board, matrix.with_questions(texts), names)


def _contender(store: Store, line: Line, folder: Path) -> Contender:
    runs = [find_evaluation(store, result.run_id) for result in line.results]
    return Contender(
        name=line.name,
        runs=tuple(info_of_run(store, run) for run in runs),
        columns=tuple(columns_of_run(store, run, folder) for run in runs),
        settings=line.settings,
        usd=_mean([_usd(result) for result in line.results]),
        seconds=_mean([result.seconds.get("target_seconds.mean") for result in line.results]),
        seconds_p95=_mean([result.seconds.get("target_seconds.p95") for result in line.results]),
    )


def _usd(result: RunResult) -> float | None:
    """What the target cost for one question; None where prices or tokens are not known."""
    cost, questions = result.cost_usd.get("target"), result.totals["num_questions"]
    return None if cost is None or not questions else cost / questions


def _mean(values: Sequence[float | None]) -> float | None:
    """The mean over the seeds; None where one of them was not measured."""
    measured = [value for value in values if value is not None]
    return sum(measured) / len(measured) if measured and len(measured) == len(values) else None


def _texts(paths: Sequence[Path], ids: set[str]) -> dict[str, str]:
    """The text of each question, from the first run that holds it."""
    texts: dict[str, str] = {}
    for path in paths:
        if missing := ids - texts.keys():
            texts |= {row.id: row.question for row in stored_rows(path, ["id", "question"], missing)}
    return texts
