"""The results of several golden sets, evaluated one after the other below one MLflow run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from evaltrack.evaluation.result import RunResult


@dataclass(frozen=True)
class SetResults:
    """One result for each golden set, in the order in which they were named; `run_id` is their parent in MLflow."""

    run_id: str
    experiment_id: str
    results: tuple[RunResult, ...]
    link: str | None = None
    serve_command: str | None = None

    @property
    def status(self) -> Literal["FINISHED", "FAILED"]:
        """FAILED where any of its runs is."""
        return "FINISHED" if self.success else "FAILED"

    @property
    def success(self) -> bool:
        """Whether every run ended FINISHED."""
        return all(result.success for result in self.results)

    def _repr_html_(self) -> str:
        return "".join(filter(None, (result._repr_html_() for result in self.results)))
