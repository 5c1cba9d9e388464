"""What the results of several evaluations below one MLflow run have in common."""

from __future__ import annotations

from typing import Literal

from evaltrack.evaluation.result import RunResult


class ChildResults:
    """Several `results`, which end well together."""

    results: tuple[RunResult, ...]

    @property
    def status(self) -> Literal["FINISHED", "FAILED"]:
        """FAILED where any of its runs is."""
        return "FINISHED" if self.success else "FAILED"

    @property
    def success(self) -> bool:
        """Whether every run ended FINISHED."""
        return all(result.success for result in self.results)
