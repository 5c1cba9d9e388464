"""The results of several golden sets, evaluated one after the other below one MLflow run."""

from __future__ import annotations

from dataclasses import dataclass

from evaltrack.evaluation.child_results import ChildResults
from evaltrack.evaluation.result import RunResult


@dataclass(frozen=True)
class SetResults(ChildResults):
    """One result for each golden set, in the order in which they were named; `run_id` is their parent in MLflow."""

    run_id: str
    experiment_id: str
    results: tuple[RunResult, ...]
    link: str | None = None
    serve_command: str | None = None

    def _repr_html_(self) -> str:
        return "".join(filter(None, (result._repr_html_() for result in self.results)))
