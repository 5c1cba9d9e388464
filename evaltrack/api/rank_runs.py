"""Loads the rows, costs and times of runs from MLflow, and has `evaluation.ranking` rank them in a leaderboard."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from evaltrack.api.compare_sides import side_of_run
from evaltrack.evaluation.ranking import Contender, Leaderboard, ReferenceKind, rank
from evaltrack.evaluation.result import RunResult
from evaltrack.tracking.find_runs import find_evaluation
from evaltrack.tracking.store import Store


@dataclass(frozen=True)
class Line:
    """The input of one line of a leaderboard: a configuration with the results of its runs."""

    name: str
    results: Sequence[RunResult]
    settings: Mapping[str, str] = field(default_factory=dict)


def leaderboard_of(
    store: Store, lines: Sequence[Line], rank_by: str = "", reference: ReferenceKind = "best"
) -> Leaderboard:
    """Return the leaderboard of several configurations, from the rows of their runs.

    Raises:
        UsageError: there is no such metric.
        TrackingError: the store does not answer, or the rows of a run are gone or damaged.
    """
    with tempfile.TemporaryDirectory(prefix="evaltrack-") as folder:
        contenders = [_contender(store, line, Path(folder)) for line in lines]
        return rank(contenders, rank_by, reference)


def _contender(store: Store, line: Line, folder: Path) -> Contender:
    runs = [find_evaluation(store, result.run_id) for result in line.results]
    return Contender(
        name=line.name,
        runs=tuple(runs),
        columns=tuple(side_of_run(store, run, folder).frame for run in runs),
        settings=line.settings,
        usd=_mean([_usd(result) for result in line.results]),
        seconds=_mean([result.seconds.get("target_seconds.mean") for result in line.results]),
        seconds_p95=_mean([result.seconds.get("target_seconds.p95") for result in line.results]),
    )


def _usd(result: RunResult) -> float | None:
    """Return the target's cost of one question in USD; None if prices or tokens are unknown."""
    cost, questions = result.cost_usd.get("target"), result.totals["num_questions"]
    return None if cost is None or not questions else cost / questions


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean over the seeds; None if one of them was not measured."""
    measured = [value for value in values if value is not None]
    return sum(measured) / len(measured) if measured and len(measured) == len(values) else None
