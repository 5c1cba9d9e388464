"""Loads the rows, costs and times of runs from MLflow, and has `evaluation.ranking` rank them in a leaderboard."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from evaltrack.api.compare_sides import side_of_run
from evaltrack.evaluation.ranking import Contender
from evaltrack.evaluation.result import RunResult
from evaltrack.tracking.find_runs import find_evaluation
from evaltrack.tracking.store import Store


def contender_of(
    store: Store, name: str, results: Sequence[RunResult], settings: Mapping[str, str] = MappingProxyType({})
) -> Contender:
    """Return a contender of a leaderboard: a configuration with the rows of its runs.

    Raises:
        TrackingError: the store does not answer, or the rows of a run are gone or damaged.
    """
    runs = [find_evaluation(store, result.run_id) for result in results]
    with tempfile.TemporaryDirectory(prefix="evaltrack-") as folder:
        columns = tuple(side_of_run(store, run, Path(folder)).frame for run in runs)
    return Contender(
        name=name,
        runs=tuple(runs),
        columns=columns,
        settings=settings,
        usd=_mean([_usd(result) for result in results]),
        seconds=_mean([result.seconds.get("target_seconds.mean") for result in results]),
        seconds_p95=_mean([result.seconds.get("target_seconds.p95") for result in results]),
    )


def _usd(result: RunResult) -> float | None:
    """Return the target's cost of one question in USD; None if prices or tokens are unknown."""
    cost, questions = result.cost_usd.get("target"), result.totals["num_questions"]
    return None if cost is None or not questions else cost / questions


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean over the seeds; None if one of them was not measured."""
    measured = [value for value in values if value is not None]
    return sum(measured) / len(measured) if measured and len(measured) == len(values) else None
