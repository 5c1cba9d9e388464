"""Ranks finished runs of several configurations in a leaderboard, each tested against a reference, with cost and time.

Configurations are ranked over the questions that each of them measured, so that a lost question raises no mean. The
tests are exact sign-flip tests with Holm's correction (1979). If the reference is the best configuration, the data
chose the tests, and the correction is for all pairs.

A difference is configuration - reference. Cost and time are those of the target, for one question.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from evaltrack.compare.engine import AFFECTED
from evaltrack.errors import UsageError
from evaltrack.metrics.catalogue import HEADLINES, MetricTable, metric_table, own_scores_of
from evaltrack.records import Signature
from evaltrack.records.base import count
from evaltrack.records.run import Run
from evaltrack.stats.intervals import paired_interval
from evaltrack.stats.significance import holm, sign_flip

if TYPE_CHECKING:
    import pandas as pd

COVERAGE = 0.9
"""A configuration that measured a smaller share of its group's measured questions has no rank."""

BY_DEFAULT = ("reasoning_score", "judge_score", "recall_at_k", "pass_rate")
"""The default ranking metric: the first of these that every configuration measured, else the first that any did."""

TOKENS = "num_tokens"

ReferenceKind = Literal["best", "first"]
CostUnit = Literal["usd", "tokens"]


@dataclass(frozen=True)
class Contender:
    """One configuration: its run with the light columns.

    `settings` are the differences from the others. `usd`, `seconds` and `seconds_p95` are None if not measured.
    """

    name: str
    run: Run
    columns: pd.DataFrame
    settings: Mapping[str, str]
    usd: float | None = None
    seconds: float | None = None
    seconds_p95: float | None = None


@dataclass(frozen=True)
class ContenderMean:
    """A mean over `n` questions; `delta` is its paired difference to the reference, with its 95 % interval.

    `method` is that of the interval (see `evaltrack.stats.intervals`). The reference has no difference, nor has a
    metric that the two measured in different ways.
    """

    value: float
    n: int
    delta: float | None = None
    interval: tuple[float, float] | None = None
    method: str | None = None


@dataclass(frozen=True)
class Standing:
    """One line of the table.

    `rank` is None if `why_unranked` has a reason. `p_value` is that of the exact sign-flip test against the reference,
    corrected for all tests of the leaderboard.
    """

    contender: Contender
    means: Mapping[str, ContenderMean]
    rank: int | None = None
    why_unranked: str = ""
    p_value: float | None = None
    cost: float | None = None

    @property
    def name(self) -> str:
        """The name of the configuration."""
        return self.contender.name

    @property
    def num_errors(self) -> int:
        """The number of questions that ended in an error."""
        return self.contender.run.num_errors


@dataclass(frozen=True)
class Group:
    """Configurations that measured the ranking metric in the same way.

    `label` names that way if there are several groups. `num_questions` is the number of questions that every ranked
    configuration measured.
    """

    label: str
    standings: tuple[Standing, ...]
    reference: str | None
    num_questions: int


@dataclass(frozen=True)
class Leaderboard:
    """Several configurations by one metric, the best first.

    `rank_by` is None if nothing was measured. `metrics` are those of the table; `tests` is the number of tests that the
    p-values are corrected for. `cost_unit` is the unit of `Standing.cost`.
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


def rank(
    contenders: Sequence[Contender], rank_by: str = "", reference: ReferenceKind = "best", resamples: int = 10_000
) -> Leaderboard:
    """Return the leaderboard of several configurations.

    Args:
        contenders: In the order of their names in the call; each has a different name.
        rank_by: A metric by its name in `SCORES`; empty chooses one.
        reference: The configuration that the others are compared with: the best, or the first.
        resamples: Bootstrap resamples for each interval.

    Raises:
        UsageError: there is no such metric, or runs are not compared by it.
    """
    table = metric_table(*(own_scores_of(each.run.signature) for each in contenders))
    check_metric(rank_by, table)
    scores = _Scores(contenders, table)
    by = rank_by or _choose_metric(contenders, scores)
    if by is None:
        lost = tuple(Standing(each, {}, why_unranked="nothing was measured") for each in contenders)
        return Leaderboard(None, True, reference, (), (Group("", lost, None, 0),) if lost else (), 0)
    shown = dict.fromkeys((by, *(score.metric for score in HEADLINES), *table.own_names))
    metrics = tuple(name for name in shown if len(scores.of(name).columns))
    alike: dict[tuple[Any, ...], list[Contender]] = {}
    for contender in contenders:
        alike.setdefault(_parts(contender, by), []).append(contender)
    ranked = [_Ranked(each, scores, by, reference) for each in alike.values()]
    tests = sum(each.tests for each in ranked)
    p_values = holm({name: p for each in ranked for name, p in each.p_values.items()}, tests)
    cost_unit, costs = _costs(contenders, scores)
    firsts = [each[0].run.signature for each in alike.values()]
    groups = []
    for each, first in zip(ranked, firsts, strict=True):
        standings = (each.standing(one, metrics, p_values, resamples) for one in each.order)
        standings = (replace(one, cost=costs.get(one.name)) for one in standings)
        groups.append(Group(_label(first, firsts, by), tuple(standings), each.reference, len(each.values)))
    up = table.by_metric[by].higher_is_better
    return Leaderboard(by, up, reference, metrics, tuple(groups), tests, cost_unit)


def check_metric(name: str, table: MetricTable) -> None:
    """Refuse a metric by which runs are not compared. An empty name is valid.

    Raises:
        UsageError: there is no such metric, or runs are not compared by it.
    """
    if name and (name not in table.by_metric or not table.by_metric[name].compared):
        names = ", ".join(score.metric for score in table.scores if score.compared)
        raise UsageError(f"`rank_by={name}`: no metric that runs are compared by; write one of {names}")


class _Scores:
    """The scores of all configurations by question, for each metric."""

    def __init__(self, contenders: Sequence[Contender], table: MetricTable) -> None:
        self.table, self._contenders = table, contenders
        self._frames: dict[str, pd.DataFrame] = {}

    def of(self, metric: str) -> pd.DataFrame:
        """Return the scores by id and digest: a column for each configuration that measured the metric, by its name."""
        import pandas as pd

        if metric not in self._frames:
            score = self.table.by_metric[metric].name
            columns: dict[str, pd.Series] = {}
            for each in self._contenders:
                if score in each.columns and not each.columns[score].isna().all():
                    columns[each.name] = each.columns.set_index(["id", "digest"])[score].astype(float).dropna()
            self._frames[metric] = pd.concat(columns, axis=1) if columns else pd.DataFrame()
        return self._frames[metric]


def _choose_metric(contenders: Sequence[Contender], scores: _Scores) -> str | None:
    measured = [{name for name in BY_DEFAULT if each.name in scores.of(name)} for each in contenders]
    measured = [each for each in measured if each]  # a failed configuration decides nothing
    if not measured:
        return None
    by_all = set.intersection(*measured)
    return next(name for name in BY_DEFAULT if name in (by_all or set.union(*measured)))


def _parts(contender: Contender, metric: str) -> tuple[Any, ...]:
    """Return the settings that shape a metric. Two values can be compared only if these are equal."""
    signature = contender.run.signature
    parts = tuple(getattr(signature, part) for part, affected in AFFECTED.items() if metric in affected)
    return (*parts, *(score for score in signature.scores if score.name == metric))


def _label(signature: Signature, others: Sequence[Signature], metric: str) -> str:
    """Return ``k = 5``: the settings that differ between the groups."""
    names = [part for part, affected in AFFECTED.items() if metric in affected and part != "judge_prompt"]
    differ = [part for part in names if len({getattr(each, part) for each in others}) > 1]
    return ", ".join(f"{part.replace('_', ' ')} = {getattr(signature, part)}" for part in differ)


class _Ranked:
    """The configurations of one group, in order; `values` has the questions that each ranked one measured."""

    def __init__(self, contenders: Sequence[Contender], scores: _Scores, by: str, reference: ReferenceKind) -> None:
        self._scores = scores
        frame = scores.of(by)
        frame = frame[[each.name for each in contenders if each.name in frame]].dropna(how="all")
        measured = frame.count()
        self._why = {each.name: _why_unranked(measured.get(each.name), len(frame)) for each in contenders}
        ranked = [each.name for each in contenders if not self._why[each.name]]
        self.values = frame[ranked].dropna() if ranked else frame[:0]
        if ranked and self.values.empty:
            self._why |= dict.fromkeys(ranked, "no question was measured by all")
            ranked = []
        up = scores.table.by_metric[by].higher_is_better
        self._places = {name: (1 if up else -1) * float(self.values[name].mean()) for name in ranked}
        self.order = sorted(contenders, key=lambda each: -self._places.get(each.name, float("-inf")))
        first = contenders[0] if contenders[0].name in ranked else None
        self._reference = first if reference == "first" else self.order[0] if ranked else None
        self.reference, number = self._reference.name if self._reference else None, len(ranked)
        pairs = number * (number - 1) // 2 if reference == "best" else number - 1
        self.tests = 0 if self.reference is None else pairs
        self.p_values = {
            name: sign_flip(self.values[self.reference].to_numpy(), self.values[name].to_numpy()).p
            for name in ranked
            if self.reference not in (None, name)
        }

    def standing(
        self, contender: Contender, metrics: Sequence[str], p_values: Mapping[str, float], resamples: int
    ) -> Standing:
        """Return the line of one configuration."""
        name = contender.name
        place = self._places.get(name)
        means = {metric: self._mean(contender, metric, resamples) for metric in metrics}
        return Standing(
            contender,
            {metric: mean for metric, mean in means.items() if mean is not None},
            rank=None if place is None else 1 + sum(other > place for other in self._places.values()),
            why_unranked=self._why[name],
            p_value=p_values.get(name),
        )

    def _mean(self, contender: Contender, metric: str, resamples: int) -> ContenderMean | None:
        """Return a metric over the questions that all ranked ones measured, with its difference to the reference."""
        name, frame = contender.name, self._scores.of(metric)
        if name not in frame:
            return None
        common = frame[[each for each in self._places if each in frame]].dropna()
        if name not in self._places or common.empty:
            return ContenderMean(float(frame[name].mean()), int(frame[name].count()))
        mean, other = ContenderMean(float(common[name].mean()), len(common)), self._reference
        if other in (None, contender) or other.name not in common or _parts(other, metric) != _parts(contender, metric):
            return mean
        pair = common[other.name].to_numpy(), common[name].to_numpy()
        delta = float(pair[1].mean() - pair[0].mean())
        span = self._scores.table.by_metric[metric].span
        interval = paired_interval(*pair, span=span, resamples=resamples)
        if interval is None:
            return replace(mean, delta=delta)
        return replace(mean, delta=delta, interval=(interval.low, interval.high), method=interval.method)


def _why_unranked(measured: int | None, asked: int) -> str:
    if measured is None:
        return "not measured"
    return "" if measured >= COVERAGE * asked else f"measured {measured:,} of {count(asked, 'question')}"


def _costs(contenders: Sequence[Contender], scores: _Scores) -> tuple[CostUnit | None, dict[Any, float]]:
    """Return the cost of one question by configuration: in USD if any has a price, else in counted tokens."""
    usd = {each.name: each.usd for each in contenders if each.usd is not None}
    tokens = scores.of(TOKENS).mean().to_dict()
    return ("usd", usd) if usd else ("tokens", tokens) if tokens else (None, {})
