"""The result of a sweep: its leaderboard, and the result of each of its runs."""

from __future__ import annotations

from dataclasses import dataclass

from evaltrack.compare.leaderboard import Leaderboard
from evaltrack.evaluation.child_results import ChildResults
from evaltrack.evaluation.result import RunResult


@dataclass(frozen=True)
class SweepResult(ChildResults):
    """One result for each configuration and seed, in the order of the sweep; `run_id` is their parent in MLflow.

    `reused` of them were finished before the sweep was resumed. `notes` says what is worth knowing.
    """

    run_id: str
    experiment_id: str
    name: str
    golden: str
    leaderboard: Leaderboard
    results: tuple[RunResult, ...]
    reused: int = 0
    notes: tuple[str, ...] = ()
    link: str | None = None
    serve_command: str | None = None
