"""How a metric went over the runs of a golden set, as far as they measured the same. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evaltrack.compare.comparable import alike

if TYPE_CHECKING:
    from evaltrack.records.past_run import PastRun


def trend(metric: str, run: PastRun, runs: Sequence[PastRun]) -> list[float]:
    """The metric of `run` and of those of the `runs` that measured it in the same way over the same questions.

    `runs` holds the run itself, newest first; the values come oldest first. Other means cannot stand beside each other.
    Empty where there are fewer than two values.
    """
    return [each.metrics[metric] for each in trend_runs(metric, run, runs)]


def trend_runs(metric: str, run: PastRun, runs: Sequence[PastRun]) -> list[PastRun]:
    """The runs behind the same values, oldest first."""
    same = [each for each in reversed(runs) if each is run or alike(metric, each, run)]
    measured = [each for each in same if metric in each.metrics]
    return measured if len(measured) > 1 and metric in run.metrics else []
