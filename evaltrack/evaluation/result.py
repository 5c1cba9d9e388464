"""Defines the results of one evaluation, of several golden sets and of a sweep, which all renderings read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from evaltrack.metrics.catalogue import BY_METRIC, MetricTable, metric_table
from evaltrack.metrics.criteria import Checked, MeasuredAim, measured_aims
from evaltrack.records import Signature
from evaltrack.records.row import Row, failure_message

if TYPE_CHECKING:
    import pandas as pd

    from evaltrack.evaluation.ranking import Leaderboard

METRICS = frozenset(BY_METRIC)


@dataclass(frozen=True)
class RunResult:
    """The result of one evaluation.

    `metrics` are means, each over `counts` questions of the same name; `totals` counts questions. `groups` has mean and
    count by metric for each domain and difficulty, `by_judge` for each judge of a panel. `cost_usd` has `target` and
    `judge` if prices are known. `notes` has remarks on the run. `errors` and `missed` are the first rows that failed or
    did not pass. `link` is the run's page in MLflow's UI; if its address is unknown, `serve_command` starts one.
    `settings` has the params and the commit of the working directory. `screen` renders the result for a notebook.
    `read_table` streams the rows as columns from MLflow.
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
    link: str | None
    serve_command: str | None
    read_table: Callable[[], Iterable[dict[str, Any]]] = field(repr=False, compare=False)
    settings: Mapping[str, str] = field(default_factory=dict)
    screen: Callable[[RunResult], str] | None = field(default=None, repr=False, compare=False)

    @property
    def success(self) -> bool:
        """True if the run ended FINISHED."""
        return self.status == "FINISHED"

    @property
    def table(self) -> MetricTable:
        """The metrics that the run may have: built-in ones and the user's own."""
        return metric_table(self.signature.scores)

    @property
    def means(self) -> dict[str, float]:
        """The metrics without the maxima (`.max`) that others can reach."""
        return {name: value for name, value in self.metrics.items() if not name.endswith(".max")}

    @property
    def data(self) -> dict[str, float]:
        """Metrics and totals by name, as in ``result.data["recall_at_k"]``."""
        return {**self.metrics, **self.totals}

    @property
    def aims(self) -> tuple[MeasuredAim, ...]:
        """For a reasoning run, its measured values with their aims and the published baseline; else empty."""
        return tuple(measured_aims(self.metrics)) if self.signature.rubric == "reasoning" else ()

    @property
    def passed(self) -> tuple[int, int]:
        """The number of questions that passed, and of those that passed or failed."""
        measured = self.counts["pass_rate"] if "pass_rate" in self.metrics else 0
        return (round(self.metrics["pass_rate"] * measured) if measured else 0), measured

    @property
    def coverage(self) -> float:
        """Share of the questions answered without an error, in [0, 1]."""
        return 1 - self.totals["num_errors"] / self.totals["num_questions"] if self.totals["num_questions"] else 0.0

    @property
    def why_nothing(self) -> str:
        """The reason that no question passed or failed: the errors and the parts that were not measured or judged."""
        failed, num_questions = self.totals["num_errors"], self.totals["num_questions"]
        others = num_questions - failed
        unmeasured = f", and {others:,} had neither sources nor a verdict" if others else ""
        errors = Counter(failure_message(row.error) for row in self.read_rows() if row.error).most_common(1)
        example = f". Most common error: {' '.join(errors[0][0].split())[:300]}" if errors else ""
        return (
            f"no question passed or failed: {failed:,} of {num_questions:,} failed with an error{unmeasured}{example}"
        )

    @cached_property
    def rows(self) -> list[dict[str, Any]]:
        """Every row as columns, in the order of the golden set, read from MLflow."""
        return list(self.read_table())

    def read_rows(self) -> Iterator[Row]:
        """Return every row as a typed record, in the order of the golden set, streamed from MLflow."""
        return map(Row.of, self.read_table())

    def to_pandas(self) -> pd.DataFrame:
        """Return every row in a pandas DataFrame, in the order of the golden set; unmeasured values are None or NaN."""
        import pandas as pd

        return pd.DataFrame(self.rows)

    def _repr_html_(self) -> str | None:
        return self.screen(self) if self.screen else None


@dataclass(frozen=True)
class ChildResults:
    """The results of several runs. `run_id` is their parent run in MLflow."""

    run_id: str
    experiment_id: str
    results: tuple[RunResult, ...]
    link: str | None = field(default=None, kw_only=True)
    serve_command: str | None = field(default=None, kw_only=True)

    @property
    def status(self) -> Literal["FINISHED", "FAILED"]:
        """FAILED if any of its runs failed."""
        return "FINISHED" if self.success else "FAILED"

    @property
    def success(self) -> bool:
        """True if every run ended FINISHED."""
        return all(result.success for result in self.results)


@dataclass(frozen=True)
class SetResults(ChildResults):
    """One result per golden set, in the order of their names in the call."""

    def _repr_html_(self) -> str:
        return "".join(filter(None, (result._repr_html_() for result in self.results)))


@dataclass(frozen=True)
class SweepResult(ChildResults):
    """One result per configuration and seed, in the order of the sweep.

    `reused` of them were finished before the sweep was resumed.
    """

    name: str
    golden: str
    leaderboard: Leaderboard
    reused: int = 0
