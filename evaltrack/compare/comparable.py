"""Which numbers of two runs can stand side by side, and the trend of those that can."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from evaltrack.compare.engine import AFFECTED, metrics_left_out

if TYPE_CHECKING:
    from evaltrack.records import Signature
    from evaltrack.records.past_run import PastRun


def passes_alike(one: Signature, other: Signature) -> bool:
    """Whether questions pass by the same rules (judge, k, threshold, weights, …) in both runs, of any target."""
    return "pass_rate" not in metrics_left_out(one, other, AFFECTED)


def same_target(one: Signature | None, other: Signature | None) -> bool:
    """Whether both runs asked the same target: what one of another does is no history of it."""
    return one is not None and other is not None and one.target == other.target


def alike(metric: str, one: PastRun, other: PastRun) -> bool:
    """Whether both runs measured this metric in the same way (judge, k, weights, …) and over the same questions.

    That they are the same is known where both asked the same golden set, no question ended in an error, and as many
    were measured.
    """
    if one.signature is None or other.signature is None:
        return False
    if one.signature.golden_digest != other.signature.golden_digest:
        return False
    whole = not one.num_errors and not other.num_errors and one.num_questions == other.num_questions
    same_count = one.counts.get(metric) == other.counts.get(metric)
    return whole and same_count and metric not in metrics_left_out(one.signature, other.signature, AFFECTED)


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
