"""What an evaluation came to: one data object, which every rendering reads and none computes on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from evaltrack.records import Row, Signature
from evaltrack.table import FlatRow

SHOWN_ROWS = 20
"""Failed and missed questions kept at most for the renderings; the tables in MLflow hold all."""


@dataclass(frozen=True)
class RunResult:
    """One finished evaluation.

    `metrics` are means, each over `counts` questions of the same name; `totals` counts questions; `groups` holds mean
    and count by metric for each domain and difficulty. `errors` and `missed` are the first rows that failed or did not
    pass. `link` is the run's page in MLflow's UI, which `serve_command` starts where no server is known.
    """

    run_id: str
    experiment_id: str
    status: Literal["FINISHED", "FAILED", "KILLED"]
    signature: Signature
    metrics: Mapping[str, float]
    counts: Mapping[str, int]
    totals: Mapping[str, int]
    groups: Mapping[str, Mapping[str, tuple[float, int]]]
    seconds: Mapping[str, float]
    errors: tuple[Row, ...]
    missed: tuple[Row, ...]
    link: str
    serve_command: str | None
    read_rows: Callable[[], Iterable[FlatRow]] = field(repr=False, compare=False)

    @property
    def success(self) -> bool:
        """Whether the run ended FINISHED."""
        return self.status == "FINISHED"

    @property
    def data(self) -> dict[str, float]:
        """Metrics and totals by name, as in ``result.data["recall_at_k"]``."""
        return {**self.metrics, **self.totals}

    @property
    def coverage(self) -> float:
        """Share of the questions that were answered without an error, in [0, 1]."""
        return 1 - self.totals["num_errors"] / self.totals["num_questions"] if self.totals["num_questions"] else 0.0

    @property
    def why_nothing(self) -> str:
        """For a run that measured nothing: why."""
        failed, asked = self.totals["num_errors"], self.totals["num_questions"]
        if failed == asked:
            return f"{failed} of {asked} questions failed"
        return f"{failed} of {asked} questions failed, and the target returned no sources for the others"

    @cached_property
    def rows(self) -> list[FlatRow]:
        """Every row in the order of the golden set, read back from MLflow."""
        return list(self.read_rows())

    def logged_metrics(self, limit: int = 60) -> dict[str, float]:
        """What MLflow's metrics hold: totals, each mean beside its count (`.n`), timings, and groups.

        Groups come largest first, as many as `limit` leaves room for; `summary.json` holds all.
        """
        logged: dict[str, float] = dict(self.totals)
        for name, value in self.metrics.items():
            logged[name] = value
            if not name.endswith(".max"):
                logged[f"{name}.n"] = self.counts[name]
        logged.update(self.seconds)
        for group, metrics in self.groups.items():
            added = {
                f"{name}.{group}{end}": value
                for name, pair in metrics.items()
                for end, value in zip(("", ".n"), pair, strict=True)
            }
            if len(logged) + len(added) > limit:
                break
            logged.update(added)
        return logged
