"""The nouns of a leaderboard: several configurations in one table, each held against one of them.

A difference is configuration - reference. Cost and time are those of the target, for one question.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from evaltrack.records.run import Run

if TYPE_CHECKING:
    import pandas as pd

ReferenceKind = Literal["best", "first"]
CostUnit = Literal["usd", "tokens"]


@dataclass(frozen=True)
class Contender:
    """One configuration: a run, or one for each seed, with the light columns of each.

    `settings` says what tells it from the others. `usd`, `seconds` and `seconds_p95` are None where they were not
    measured.
    """

    name: str
    runs: tuple[Run, ...]
    columns: tuple[pd.DataFrame, ...]
    settings: Mapping[str, str]
    usd: float | None = None
    seconds: float | None = None
    seconds_p95: float | None = None


@dataclass(frozen=True)
class ContenderMean:
    """A mean over `n` questions; `delta` is its paired difference to the reference, with its 95 % interval.

    `method` says how the interval was had (see `evaltrack.stats.intervals`). There is no difference of the reference
    itself, and none where the two measured the metric in different ways.
    """

    value: float
    n: int
    delta: float | None = None
    interval: tuple[float, float] | None = None
    method: str | None = None


@dataclass(frozen=True)
class Standing:
    """One line of the table.

    `rank` is None where `why_unranked` says why. `p_value` is that of the exact sign-flip test against the reference,
    corrected for all tests of the leaderboard. `spread` is the least and the largest mean of one seed.
    """

    contender: Contender
    means: Mapping[str, ContenderMean]
    rank: int | None = None
    why_unranked: str = ""
    p_value: float | None = None
    spread: tuple[float, float] | None = None
    cost: float | None = None

    @property
    def name(self) -> str:
        """Of the configuration."""
        return self.contender.name

    @property
    def num_errors(self) -> int:
        """Questions that ended in an error, in any of its runs."""
        return sum(run.num_errors for run in self.contender.runs)


@dataclass(frozen=True)
class Group:
    """Configurations that measured the ranking metric in the same way; `label` says in which, where there are others.

    `num_questions` is over how many questions they are ranked: those that every ranked one measured.
    """

    label: str
    standings: tuple[Standing, ...]
    reference: str | None
    num_questions: int


@dataclass(frozen=True)
class Leaderboard:
    """Several configurations by one metric, the best first.

    `rank_by` is None where nothing was measured. `metrics` are those of the table; `tests` of how many tests the
    p-values are. `cost_unit` is what `Standing.cost` counts.
    """

    rank_by: str | None
    higher_is_better: bool
    reference: ReferenceKind
    metrics: tuple[str, ...]
    groups: tuple[Group, ...]
    tests: int
    cost_unit: CostUnit | None = None

    @property
    def standings(self) -> Iterator[Standing]:
        """All lines, group after group."""
        return (each for group in self.groups for each in group.standings)
