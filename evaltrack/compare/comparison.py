"""Defines the result of a comparison: metrics and groups of both runs, rules of the gate, changed questions, verdict.

Differences are candidate - baseline. A *drop* is how much worse the candidate is, relative to the baseline's value:
positive is worse, also for metrics of which lower is better.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from html import escape
from typing import Literal

from evaltrack.compare.change import CauseKind, ChangedQuestions
from evaltrack.compare.culprits import Behind, Culprit, find_behind, find_culprits
from evaltrack.compare.gate import Gate
from evaltrack.compare.reruns import Reruns
from evaltrack.compare.run_differences import RunDifference, run_differences
from evaltrack.metrics.criteria import MeasuredAim, measured_aims
from evaltrack.metrics.metric import Threshold
from evaltrack.records.run import Run
from evaltrack.stats.significance import PairedTest

Verdict = Literal["ok", "regression", "unknown"]


@dataclass(frozen=True)
class MetricDelta:
    """One metric on both sides, over the `n` common questions that both measured.

    `drop` is relative to the baseline (None if that is 0). `interval` is the 95 % interval of `delta`, by `method` (see
    `evaltrack.stats.intervals`), None if nothing changed. `p_value` is that of the exact one-sided sign-flip test over
    the `changed` questions, for metrics with a threshold. `over`: the drop is larger than allowed; `regressed`: the
    gate also decides that it is a regression. `wins` and `losses` count questions that got better and worse. `measured`
    is the number of common questions that each side measured. `own`: it is a user-defined score.
    """

    name: str
    baseline: float
    candidate: float
    n: int
    drop: float | None
    wins: int
    losses: int
    interval: tuple[float, float] | None = None
    threshold: Threshold | None = None
    over: bool = False
    regressed: bool = False
    method: str | None = None
    p_value: float | None = None
    changed: int = 0
    measured: tuple[int, int] | None = None
    higher_is_better: bool = True
    own: bool = False

    @property
    def delta(self) -> float:
        """Candidate minus baseline."""
        return self.candidate - self.baseline

    @property
    def partial(self) -> bool:
        """True if the sides measured different questions, so that these means are over fewer than each measured."""
        return self.measured is not None and self.measured != (self.n, self.n)

    @property
    def num_lost(self) -> int:
        """The number of questions that only the baseline measured."""
        return self.measured[0] - self.n if self.measured else 0

    @property
    def shows_change(self) -> bool:
        """True if the difference may be shown: lost questions could have raised the mean, unless it is a regression."""
        return self.regressed or not self.num_lost


RuleState = Literal["broken", "unknown", "not shown", "held"]
"""`not shown`: the limit is exceeded, but not significantly; `unknown`: the gate cannot decide."""

OfFlips = Literal["flips", "net loss", "unclear", "another system"]
RuleKind = Literal[OfFlips, "metric", "not measured", "lost", "coverage", "partial", "no rule"]
"""`flips`: questions that broke and count; `net loss`: significantly more questions broke than were fixed;
`unclear`: questions that fail consistently, and may have passed by luck; `another system`: the rerun target is not the
candidate; `coverage`: too few questions are left to compare; `partial`: a run of a part of the golden set.
"""


@dataclass(frozen=True)
class Rule:
    """One rule of the gate: its `value` and `limit` in numbers of questions, or the `metric` that has both.

    `where` is the domain of a rule for one domain; `names` are the questions or metrics of the rule.
    """

    kind: RuleKind
    state: RuleState
    metric: MetricDelta | None = None
    where: str = ""
    value: int = 0
    limit: int = 0
    names: tuple[str, ...] = ()
    p_value: float | None = None


GroupKind = Literal["domain", "difficulty", "category"]


@dataclass(frozen=True)
class GroupDelta:
    """The metrics of one domain, difficulty or category."""

    kind: GroupKind
    name: str
    num_questions: int
    metrics: tuple[MetricDelta, ...]
    pass_to_fail: int
    fail_to_pass: int


@dataclass(frozen=True, kw_only=True)
class Comparison(ChangedQuestions):
    """The result of comparing a candidate with a baseline.

    `rules` has the rules of the `gate`, broken ones first. `loss` is the exact one-sided test of lost passes over all
    questions. `causes` counts the causes of the questions that got worse. `not_selected` are the questions
    that one run did not select, `redeclared` the user-defined scores that the runs compute or declare differently.
    `screen` renders the comparison for a notebook.
    """

    baseline: Run
    candidate: Run
    gate: Gate
    loss: PairedTest
    metrics: tuple[MetricDelta, ...]
    groups: tuple[GroupDelta, ...]
    num_common: int
    added: tuple[str, ...]
    removed: tuple[str, ...]
    edited: tuple[str, ...]
    not_selected: tuple[str, ...]
    ignored: tuple[str, ...]
    left_out: tuple[str, ...]
    causes: Mapping[CauseKind, int]
    redeclared: tuple[str, ...] = ()
    reruns: Reruns = field(default_factory=Reruns)
    verdict: Verdict = "unknown"
    rules: tuple[Rule, ...] = ()
    compare_link: str | None = None
    screen: Callable[[Comparison], str] | None = field(default=None, repr=False, compare=False)

    @property
    def differences(self) -> tuple[RunDifference, ...]:
        """The differences between the settings of the two runs."""
        return run_differences(self.baseline, self.candidate)

    @property
    def aims(self) -> tuple[MeasuredAim, ...]:
        """Each aim of the rubric whose metric both sides measured; none if the rubric is another one."""
        was, now = ({each.name: getattr(each, side) for each in self.metrics} for side in ("baseline", "candidate"))
        return tuple(measured_aims(now, was))

    @cached_property
    def culprits(self) -> list[Culprit]:
        """The pages, errors and causes of the questions that got worse, those with the most questions first."""
        return find_culprits(self, self.num_common)

    @cached_property
    def behind(self) -> Behind | None:
        """The main cause of the questions that got worse."""
        return find_behind(self)

    @property
    def passing_compared(self) -> bool:
        """True if passing is compared. If not, no question can break or be fixed."""
        return "pass_rate" not in self.left_out

    @property
    def exit_code(self) -> int:
        """0 no regression, 1 regression, 3 unknown result."""
        return EXIT_CODES[self.verdict]

    def _repr_html_(self) -> str | None:
        return self.screen(self) if self.screen else None


EXIT_CODES: dict[Verdict, int] = {"regression": 1, "unknown": 3, "ok": 0}
"""The exit code of each verdict, the worst first: the worst of several sets decides."""


@dataclass(frozen=True)
class ComparedSet:
    """One golden set: its comparison, or the reason that it could not be compared."""

    golden: str
    comparison: Comparison | None = None
    problem: str = ""

    @property
    def verdict(self) -> Verdict:
        """The verdict of the comparison; `unknown` without one."""
        return self.comparison.verdict if self.comparison else "unknown"


@dataclass(frozen=True)
class SetComparisons:
    """Several golden sets in the order given, each compared with its baseline."""

    sets: Sequence[ComparedSet]

    @property
    def verdict(self) -> Verdict:
        """The worst of all verdicts: regression, then unknown, then ok."""
        verdicts = {each.verdict for each in self.sets}
        return next((verdict for verdict in EXIT_CODES if verdict in verdicts), "unknown")

    @property
    def exit_code(self) -> int:
        """0 no regression in any set, 1 a regression in one, else 3 if one is unknown."""
        return EXIT_CODES[self.verdict]

    def _repr_html_(self) -> str:
        problems = {each.golden: f"<p>{escape(each.golden)}: {escape(each.problem)}</p>" for each in self.sets}
        screens = ((each.golden, each.comparison and each.comparison._repr_html_()) for each in self.sets)
        return "".join(screen or problems[golden] for golden, screen in screens)
