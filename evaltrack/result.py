"""What an evaluation came to: one data object, which every rendering reads and none computes on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from evaltrack.criteria import Checked
from evaltrack.records import Row, Signature
from evaltrack.scores import SCORES
from evaltrack.table import FlatRow

METRICS = frozenset(score.metric for score in SCORES)

OPTIONAL_TOTALS = frozenset(
    {
        "num_judged",
        "judge_errors",
        "total_tokens",
        "judge_tokens",
        "cached_tokens",
        "reasoning_tokens",
        "judge_cached_tokens",
        "judge_reasoning_tokens",
        "cached_verdicts",
        "num_unanswered",
        "trial_errors",
    }
)
"""Totals that are logged only where they are not 0."""


@dataclass(frozen=True)
class RunResult:
    """One finished evaluation.

    `metrics` are means, each over `counts` questions of the same name; `totals` counts questions; `groups` holds mean
    and count by metric for each domain and difficulty; `by_judge` the same for each judge of a panel. `cost_usd` holds
    `target` and `judge` where prices are known. `notes` says what is worth knowing. `errors` and `missed` are the first
    rows that failed or did not pass. `link` is the run's page in MLflow's UI, which `serve_command` starts where no
    server is known.
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
    by_judge: Mapping[str, tuple[float, int]]
    cost_usd: Mapping[str, float]
    criteria: tuple[Checked, ...]
    notes: tuple[str, ...]
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
            return f"{failed} of {asked} questions ended in errors"
        return f"{failed} of {asked} questions ended in errors, and the target returned no sources for the others"

    @cached_property
    def rows(self) -> list[FlatRow]:
        """Every row in the order of the golden set, read back from MLflow."""
        return list(self.read_rows())

    def logged_metrics(self, limit: int = 80, *, held: Collection[str] = ()) -> dict[str, float]:
        """What MLflow's metrics hold: totals, each mean beside its count (`.n`), timings, and groups.

        Groups come largest first, as many as `limit` leaves room for; `summary.json` holds all. Totals of 0 are
        left out where most runs have none, but for those that a run that is resumed `held` with another number.
        """
        left_out = OPTIONAL_TOTALS.difference(held)
        logged: dict[str, float] = {name: n for name, n in self.totals.items() if n or name not in left_out}
        for name, value in self.metrics.items():
            logged[name] = value
            if name in METRICS:
                logged[f"{name}.n"] = self.counts[name]
        for judge, (mean, n) in self.by_judge.items():
            logged |= {f"judge_score.by.{judge}": mean, f"judge_score.by.{judge}.n": n}
        logged.update({f"{whose}_cost_usd": cost for whose, cost in self.cost_usd.items()})
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
