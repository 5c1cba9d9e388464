"""The nouns of a comparison: one immutable data object that every rendering reads.

Differences are candidate - baseline. A *drop* is how much worse the candidate is, relative to the baseline's value
(positive is worse, whichever way the metric points).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import TYPE_CHECKING, Literal

from evaltrack.compare.chance import ByRule, ChanceKind, by_rule_alone, chance_of, explaining_documents
from evaltrack.compare.change import WORSE, Asking, CauseKind, Change, Fate, Outcome, ScatterKind, scatter_kind
from evaltrack.compare.culprits import Behind, Culprit, find_behind, find_culprits
from evaltrack.compare.errors_by_message import ErrorCount
from evaltrack.compare.pages import ids_made_anew
from evaltrack.compare.run_info import RunDifference, RunInfo, run_differences
from evaltrack.metrics.criteria import Checked
from evaltrack.metrics.reasoning_aims import RUBRIC_AIMS, relative
from evaltrack.rows.stored_row import StoredRow

if TYPE_CHECKING:
    from evaltrack.compare.gate import Gate


Verdict = Literal["ok", "regression", "unknown"]


@dataclass(frozen=True)
class Threshold:
    """How large a drop is tolerated: a share of the baseline's value, or an amount of the metric itself."""

    amount: float
    relative: bool

    def __str__(self) -> str:
        return f"{self.amount:.4g}" if not self.relative else f"{100 * self.amount:.4g} %"


@dataclass(frozen=True)
class MetricDelta:
    """One metric on both sides, over the `n` common questions where both measured it.

    `drop` is relative to the baseline (None where that is 0); `interval` the 95 % interval of `delta`, by `method` (see
    `evaltrack.stats.intervals`); `p_value` of the exact sign-flip test over the `changed` questions, for metrics with a
    threshold. `over`: the drop is larger than tolerated; `regressed`: and the gate takes it for a regression;
    `detectable`: the smallest drop that so many questions would show at 80 % power; `wins`, `ties`, `losses` count
    questions that got better, stayed, got worse; `noise`: how far two runs' means differ by the judge's scatter alone.
    `measured` is how many common questions each side measured, and `reachable` the most that the mean can be.
    `own`: it is a score of the user's own.
    """

    name: str
    baseline: float
    candidate: float
    n: int
    drop: float | None
    wins: int
    ties: int
    losses: int
    interval: tuple[float, float] | None = None
    detectable: float | None = None
    threshold: Threshold | None = None
    regressed: bool = False
    noise: float | None = None
    method: str | None = None
    p_value: float | None = None
    changed: int = 0
    over: bool = False
    measured: tuple[int, int] | None = None
    reachable: float | None = None
    higher_is_better: bool = True
    own: bool = False

    @property
    def delta(self) -> float:
        """Candidate minus baseline."""
        return self.candidate - self.baseline

    @property
    def partial(self) -> bool:
        """Whether the sides measured other questions, so that these means are of those in both."""
        return self.measured is not None and self.measured != (self.n, self.n)

    @property
    def num_lost(self) -> int:
        """Questions that only the baseline measured."""
        return self.measured[0] - self.n if self.measured else 0

    @property
    def shows_change(self) -> bool:
        """Whether the difference is one of the whole: what was lost may have lifted it, unless it is a regression."""
        return self.regressed or not self.num_lost


RuleState = Literal["broken", "unknown", "not shown", "held"]
"""`not shown`: the limit is exceeded, and chance explains it; `unknown`: it keeps the gate from deciding."""


@dataclass(frozen=True)
class GateLine:
    """A rule of the gate in a sentence, with its value and what is allowed; or what kept the gate from deciding."""

    state: RuleState
    text: str


@dataclass(frozen=True)
class GroupDelta:
    """The metrics of one domain, difficulty or category; `p_value` of its flips (exact McNemar, Holm over its kind)."""

    kind: Literal["domain", "difficulty", "category"]
    name: str
    num_questions: int
    metrics: tuple[MetricDelta, ...]
    pass_to_fail: int
    fail_to_pass: int
    p_value: float


@dataclass(frozen=True)
class ComparedAim:
    """One aim of the rubric in a comparison. Changes are relative to what they are measured from.

    `improvement` is the candidate's over the run that it is compared with (None where that is 0),
    `published_improvement` the candidate's over the `published` baseline, and `aim_improvement` the aim's over that.
    """

    metric: str
    aim: float
    baseline: float
    candidate: float
    reached: bool
    improvement: float | None
    published: float
    published_improvement: float
    aim_improvement: float


def aims_of(metrics: Iterable[MetricDelta]) -> Iterator[ComparedAim]:
    """Each aim whose metric both sides measured."""
    for metric in metrics:
        aim = RUBRIC_AIMS.get(metric.name)
        if aim is None:
            continue
        yield ComparedAim(
            metric.name,
            aim.mean,
            metric.baseline,
            metric.candidate,
            aim.reached(metric.candidate),
            relative(metric.candidate, metric.baseline) if metric.baseline else None,
            aim.published,
            relative(metric.candidate, aim.published),
            aim.improvement,
        )


@dataclass(frozen=True)
class Comparison:
    """Candidate against baseline. `reasons` says in sentences why the verdict is what it is.

    `by_fate` lists the questions by what became of them, the worst first; `fates` counts them all. Of the identical
    ones `same` holds the candidate's rows without texts of sources, of very many a sample, and `unchanged` id, domain
    and outcome, where they are not too many. `gate` holds the rules.
    `gate_lines` holds the rules one by one, those that were broken first.
    `texts` are the questions that were not compared, by id, of very many none.
    `failed_again` counts the questions that ended in errors and were not measured in the baseline either: none is lost.
    `not_selected` are the questions that one side lacks because it was asked a selection of the golden set.
    `num_renamed` of those that were added were removed under another id. `screen` renders the comparison for a
    notebook.
    """

    baseline: RunInfo
    candidate: RunInfo
    verdict: Verdict
    reasons: tuple[str, ...]
    metrics: tuple[MetricDelta, ...]
    groups: tuple[GroupDelta, ...]
    flips: tuple[Change, ...]
    fixes: tuple[Change, ...]
    drops: tuple[Change, ...]
    lost: tuple[Change, ...]
    num_common: int
    mcnemar_p: float
    added: tuple[str, ...]
    removed: tuple[str, ...]
    edited: tuple[str, ...]
    ignored: tuple[str, ...]
    left_out: tuple[str, ...]
    causes: Mapping[CauseKind, int]
    criteria: tuple[tuple[Checked, Checked], ...] = ()
    compare_link: str | None = None
    notes: tuple[str, ...] = ()
    aims: tuple[ComparedAim, ...] = ()
    unchanged: tuple[tuple[str, str, Outcome], ...] = ()
    newly: tuple[Change, ...] = ()
    gains: tuple[Change, ...] = ()
    others: tuple[Change, ...] = ()
    same: tuple[StoredRow, ...] = ()
    fates: Mapping[Fate, int] = field(default_factory=dict)
    errors: tuple[ErrorCount, ...] = ()
    failed_again: int = 0
    asking: Asking = field(default_factory=Asking)
    gate: Gate | None = None
    not_selected: tuple[str, ...] = ()
    num_renamed: int = 0
    gate_lines: tuple[GateLine, ...] = ()
    texts: Mapping[str, str] = field(default_factory=dict)
    screen: Callable[[Comparison], str] | None = field(default=None, repr=False, compare=False)

    @property
    def differences(self) -> tuple[RunDifference, ...]:
        """What differs in how the two runs were made."""
        return run_differences(self.baseline, self.candidate)

    @property
    def by_fate(self) -> dict[Fate, tuple[Change, ...]]:
        """The questions of which anything differs, the worst of them first."""
        return {
            "broke": self.flips,
            "lost": self.lost,
            "lower score": self.drops,
            "fixed": self.fixes,
            "newly measured": self.newly,
            "higher score": self.gains,
            "other content": self.others,
        }

    def count(self, fate: Fate) -> int:
        """How many questions it became of, also where fewer are listed."""
        return self.fates.get(fate, len(self.same if fate == "identical" else self.by_fate[fate]))

    @property
    def num_worse(self) -> int:
        """How many questions broke, were lost, or have a lower score."""
        return sum(map(self.count, WORSE))

    @cached_property
    def culprits(self) -> list[Culprit]:
        """The sources behind what got worse, those with the most questions first."""
        returned, now = self._rows
        worse, whole = [*self.flips, *self.lost, *self.drops], len(returned) >= self.num_common
        return find_culprits(worse, returned, whole=whole, now=now, without_pages=self.ids_made_anew)

    @property
    def _rows(self) -> tuple[list[StoredRow], list[StoredRow]]:
        changes = [change for listed in self.by_fate.values() for change in listed]
        before = [change.before for change in changes if change.before is not None]
        after = [change.after for change in changes if change.after is not None]
        return [*before, *self.same], [*after, *self.same]

    @cached_property
    def ids_made_anew(self) -> bool:
        """Whether no source of the baseline is returned under its id any more; no, where not all rows are held."""
        returned, now = self._rows
        whole = len(returned) >= self.num_common and not any(row.sources for row in self.same)
        return whole and ids_made_anew(returned, now)

    @cached_property
    def behind(self) -> Behind | None:
        """What is behind most of what got worse."""
        worse = [*self.flips, *self.lost, *self.drops]
        return find_behind(worse, self.culprits, self.causes, self.num_worse, self.differences)

    @property
    def chance(self) -> ChanceKind | None:
        """What is known of chance; None where nothing flipped, or it is not compared which questions pass."""
        if not self.passing_compared:
            return None
        return chance_of(self.count("broke"), self.count("fixed"), self.mcnemar_p, self.asking)

    @property
    def scatter(self) -> ScatterKind | None:
        """What all that broke is, where each question of it is scatter."""
        return scatter_kind((flip.repeat for flip in self.flips), self.count("broke"))

    @cached_property
    def explaining(self) -> tuple[Culprit, ...]:
        """The documents seen to have changed, where they explain all that broke."""
        return explaining_documents(self.culprits, self.flips)

    @property
    def by_rule(self) -> ByRule | None:
        """What is true of a regression that the rule on questions that break makes alone; None of any other verdict.

        A metric beyond its rule, a loss that is shown, and documents that changed and explain all make it more.
        """
        regressed = any(each.regressed for each in (*self.metrics, *(m for g in self.groups for m in g.metrics)))
        if self.verdict != "regression" or regressed or not self.count("broke") or self.explaining:
            return None
        return by_rule_alone(self.chance, self.count("broke"), self.count("fixed"), self.flips)

    @property
    def passing_compared(self) -> bool:
        """Whether it is compared which questions pass; where it is not none can break or be fixed."""
        return "pass_rate" not in self.left_out

    @property
    def exit_code(self) -> int:
        """0 no regression, 1 regression, 3 could not tell."""
        return EXIT_CODES[self.verdict]

    def _repr_html_(self) -> str | None:
        return self.screen(self) if self.screen else None


EXIT_CODES: dict[Verdict, int] = {"regression": 1, "unknown": 3, "ok": 0}
"""The exit code of each verdict, the worst first: of several sets the worst decides."""


@dataclass(frozen=True)
class ComparedSet:
    """One golden set: its comparison, or why it could not be compared."""

    golden: str
    comparison: Comparison | None = None
    problem: str = ""

    @property
    def verdict(self) -> Verdict:
        """That of the comparison; without one it could not be told."""
        return self.comparison.verdict if self.comparison else "unknown"


@dataclass(frozen=True)
class SetComparisons:
    """Several golden sets, each compared with its baseline, in the order in which they were named."""

    sets: Sequence[ComparedSet]

    @property
    def verdict(self) -> Verdict:
        """The worst of all: a regression beats what could not be told, and that beats no regression."""
        verdicts = {each.verdict for each in self.sets}
        return next((verdict for verdict in EXIT_CODES if verdict in verdicts), "unknown")

    @property
    def exit_code(self) -> int:
        """0 no regression in any set, 1 a regression in one, else 3 where one could not be told."""
        return EXIT_CODES[self.verdict]

    def _repr_html_(self) -> str:
        return "".join(
            (each.comparison and each.comparison._repr_html_())
            or f"<p>{escape(each.golden)}: {escape(each.problem)}</p>"
            for each in self.sets
        )


@dataclass(frozen=True)
class OutcomeTable:
    """Questions that pass or fail on both sides; those that only one side measured, or none, so that all add up."""

    still_pass: int
    broke: int
    fixed: int
    still_fail: int
    only_before: int = 0
    only_now: int = 0
    neither: int = 0


def outcome_table(comparison: Comparison) -> OutcomeTable | None:
    """The table; None where it is not compared which questions pass, or no question was measured on both sides."""
    passing = next((metric for metric in comparison.metrics if metric.name == "pass_rate"), None)
    if passing is None or not comparison.passing_compared:
        return None
    still_pass = round(passing.baseline * passing.n) - passing.losses
    still_fail = passing.n - still_pass - passing.losses - passing.wins
    if passing.measured is None:
        return OutcomeTable(still_pass, passing.losses, passing.wins, still_fail)
    only_before, only_now = (measured - passing.n for measured in passing.measured)
    neither = comparison.num_common - passing.n - only_before - only_now
    return OutcomeTable(still_pass, passing.losses, passing.wins, still_fail, only_before, only_now, neither)
