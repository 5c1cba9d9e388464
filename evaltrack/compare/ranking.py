"""A leaderboard out of the columns of several runs. Pure.

Configurations are ranked over the questions that each of them measured, so that no mean is lifted by a question that
was lost. The tests are exact sign-flip tests with Holm's correction (1979). Where the reference is the best one, the
data chose which tests are looked at, and the correction is for all pairs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from evaltrack.compare.engine import AFFECTED
from evaltrack.compare.leaderboard import (
    Contender,
    ContenderMean,
    CostUnit,
    Group,
    Leaderboard,
    ReferenceKind,
    Standing,
)
from evaltrack.errors import UsageError
from evaltrack.metrics.catalogue import HEADLINES, MetricTable, metric_table, own_scores_of
from evaltrack.records.amount import count
from evaltrack.stats.intervals import paired_interval
from evaltrack.stats.significance import holm, sign_flip

if TYPE_CHECKING:
    import pandas as pd

COVERAGE = 0.9
"""A configuration that measured a smaller share of the questions that any of its group measured has no rank."""

BY_DEFAULT = ("reasoning_score", "judge_score", "recall_at_k", "pass_rate")
"""What is ranked by: the first of these that every configuration measured, else the first that any did."""

TOKENS = "num_tokens"


def rank(
    contenders: Sequence[Contender], rank_by: str = "", reference: ReferenceKind = "best", resamples: int = 10_000
) -> Leaderboard:
    """The leaderboard of several configurations.

    Args:
        contenders: In the order in which they were named; each with another name.
        rank_by: A metric by its name in `SCORES`; empty chooses one.
        reference: Which one the others are held against: the best, or the first that was named.
        resamples: Bootstrap resamples for each interval.

    Raises:
        UsageError: there is no such metric, or runs are not compared by it.
    """
    table = metric_table(*(own_scores_of(run.signature) for each in contenders for run in each.runs))
    check_metric(rank_by, table)
    scores = {each.name: _Scores(each, table) for each in contenders}
    by = rank_by or _choose_metric(scores.values())
    if by is None:
        lost = tuple(Standing(each, {}, why_unranked="nothing was measured") for each in contenders)
        return Leaderboard(None, True, reference, (), (Group("", lost, None, 0),) if lost else (), 0)
    metrics = [
        each
        for each in dict.fromkeys((by, *_HEADLINES, *table.own_names))
        if any(s.of(each) is not None for s in scores.values())
    ]
    made = [_Ranked(group, scores, by, reference, table) for group in _alike(contenders, by)]
    tests = sum(each.tests for each in made)
    p_values = holm({name: p for each in made for name, p in each.p_values.items()}, tests)
    cost_unit = _cost_unit(contenders, scores)
    groups = []
    for each in made:
        standings = [each.standing(one, metrics, p_values, resamples) for one in each.order]
        standings = [replace(one, cost=_cost(one.contender, scores, cost_unit)) for one in standings]
        groups.append(Group("", tuple(standings), each.reference, len(each.common)))
    up = table.by_metric[by].higher_is_better
    labels = _labels(groups, by)
    labelled = (replace(group, label=label) for group, label in zip(groups, labels, strict=True))
    return Leaderboard(by, up, reference, tuple(metrics), tuple(labelled), tests, cost_unit)


_HEADLINES = tuple(score.metric for score in HEADLINES)


def check_metric(name: str, table: MetricTable) -> None:
    """Refuse to rank by what runs are not compared by; an empty name chooses.

    Raises:
        UsageError: there is no such metric, or runs are not compared by it.
    """
    if name and (name not in table.by_metric or not table.by_metric[name].compared):
        names = ", ".join(score.metric for score in table.scores if score.compared)
        raise UsageError(f"`rank_by={name}`: no metric that runs are compared by; write one of {names}")


class _Scores:
    """The scores of one configuration by question, the mean of its seeds."""

    def __init__(self, contender: Contender, table: MetricTable) -> None:
        self._table = table
        self._frames = [frame.set_index(["id", "digest"]) for frame in contender.columns]
        self._means: dict[str, pd.Series | None] = {}

    def of(self, metric: str) -> pd.Series | None:
        """The scores that were measured with every seed, by id and digest; None where there are none."""
        if metric not in self._means:
            self._means[metric] = _mean_of(self.seeds(metric))
        return self._means[metric]

    def seeds(self, metric: str) -> list[pd.Series]:
        """The scores measured with each seed; empty where one measured none."""
        name = self._table.by_metric[metric].name
        columns = [frame[name].astype(float).dropna() for frame in self._frames if name in frame]
        return columns if len(columns) == len(self._frames) else []


def _mean_of(columns: Sequence[pd.Series]) -> pd.Series | None:
    import pandas as pd

    if not columns:
        return None
    both = columns[0] if len(columns) == 1 else pd.concat(columns, axis=1, join="inner").mean(axis=1)
    return both if len(both) else None


def _choose_metric(scores: Iterable[_Scores]) -> str | None:
    measured = [{name for name in BY_DEFAULT if each.of(name) is not None} for each in scores]
    measured = [each for each in measured if each]  # a configuration that failed decides nothing
    if not measured:
        return None
    by_all = set.intersection(*measured)
    return next(name for name in BY_DEFAULT if name in (by_all or set.union(*measured)))


def _alike(contenders: Sequence[Contender], metric: str) -> list[list[Contender]]:
    """The configurations that measured a metric in the same way, in the order in which they were named."""
    keys = [_parts(each, metric) for each in contenders]
    places = {key: place for place, key in reversed(list(enumerate(keys)))}
    ordered = sorted(zip(keys, contenders, strict=True), key=lambda each: places[each[0]])
    return [[each for _, each in group] for _, group in groupby(ordered, key=lambda each: each[0])]


def _parts(contender: Contender, metric: str) -> tuple[Any, ...]:
    """What shaped a metric; it must agree before two values of it can be compared."""
    signature = contender.runs[0].signature
    parts = tuple(getattr(signature, part) for part, affected in AFFECTED.items() if metric in affected)
    return (*parts, *(score for score in signature.scores if score.name == metric))


def _labels(groups: Sequence[Group], metric: str) -> list[str]:
    """``k = 5``: for each group the parts that tell it from the others."""
    names = [part for part, affected in AFFECTED.items() if metric in affected and part != "judge_prompt"]
    signatures = [group.standings[0].contender.runs[0].signature for group in groups]
    differ = [part for part in names if len({getattr(each, part) for each in signatures}) > 1]
    words = (", ".join(f"{part.replace('_', ' ')} = {getattr(each, part)}" for part in differ) for each in signatures)
    return list(words)


class _Ranked:
    """The configurations of one group, in order, over the questions that each of them measured."""

    def __init__(
        self,
        contenders: Sequence[Contender],
        scores: Mapping[str, _Scores],
        by: str,
        reference: ReferenceKind,
        table: MetricTable,
    ) -> None:
        self._table = table
        self._contenders, self._all_scores, self._by = contenders, scores, by
        self._commons: dict[str, Any] = {}
        columns = {each.name: scores[each.name].of(by) for each in contenders}
        measured = {name: column for name, column in columns.items() if column is not None}
        asked = set[Any]().union(*(column.index for column in measured.values()))
        self._why = {name: _why_unranked(column, len(asked)) for name, column in columns.items()}
        ranked = {name: column for name, column in measured.items() if not self._why[name]}
        self.common = _common(ranked.values())
        if ranked and not len(self.common):
            self._why |= dict.fromkeys(ranked, "no question was measured by all")
            ranked = {}
        self._values = {name: column.loc[self.common] for name, column in ranked.items()}
        sign = 1 if table.by_metric[by].higher_is_better else -1
        self._places = {name: sign * float(column.mean()) for name, column in self._values.items()}
        first = contenders[0].name if contenders[0].name in ranked else None
        best = max(self._places, key=self._places.__getitem__, default=None)
        self.reference = best if reference == "best" else first
        count = len(ranked)
        self.tests = 0 if self.reference is None else count * (count - 1) // 2 if reference == "best" else count - 1
        self.p_values = {name: self._p_value(name) for name in ranked if self.reference not in (None, name)}

    def _p_value(self, name: str) -> float:
        return sign_flip(self._values[self.reference or ""].to_numpy(), self._values[name].to_numpy()).p

    @property
    def order(self) -> list[Contender]:
        """The best first, those of one value as they were named; those without a rank at the end."""
        return sorted(self._contenders, key=lambda each: -self._places.get(each.name, float("-inf")))

    def standing(
        self, contender: Contender, metrics: Sequence[str], p_values: Mapping[str, float], resamples: int
    ) -> Standing:
        """The line of one configuration."""
        name = contender.name
        means = {metric: mean for metric in metrics if (mean := self._mean(contender, metric, resamples)) is not None}
        place = self._places.get(name)
        seeds = self._all_scores[name].seeds(self._by) if place is not None else []
        by_seed = [float(each.reindex(self.common).mean()) for each in seeds]
        return Standing(
            contender,
            means,
            rank=None if place is None else 1 + sum(other > place for other in self._places.values()),
            why_unranked=self._why[name],
            p_value=p_values.get(name),
            spread=(min(by_seed), max(by_seed)) if len(by_seed) > 1 else None,
        )

    def _common_of(self, metric: str) -> Any:
        """The questions of which all ranked ones that have a metric measured it."""
        if metric not in self._commons:
            others = (self._all_scores[name].of(metric) for name in self._values)
            self._commons[metric] = _common(column for column in others if column is not None)
        return self._commons[metric]

    def _mean(self, contender: Contender, metric: str, resamples: int) -> ContenderMean | None:
        """A metric over the questions that all ranked ones measured, with its difference to the reference."""
        own = self._all_scores[contender.name].of(metric)
        if own is None or contender.name not in self._values:
            return None if own is None else ContenderMean(float(own.mean()), len(own))
        common = self._common_of(metric)
        if not len(common):
            return ContenderMean(float(own.mean()), len(own))
        mean = ContenderMean(float(own.loc[common].mean()), len(common))
        reference = next((each for each in self._contenders if each.name == self.reference), None)
        if reference is None or reference is contender or _parts(reference, metric) != _parts(contender, metric):
            return mean
        theirs = self._all_scores[reference.name].of(metric)
        if theirs is None:
            return mean
        pair = theirs.loc[common].to_numpy(), own.loc[common].to_numpy()
        delta = float(pair[1].mean() - pair[0].mean())
        interval = paired_interval(*pair, span=self._table.by_metric[metric].span, resamples=resamples)
        if interval is None:
            return replace(mean, delta=delta)
        return replace(mean, delta=delta, interval=(interval.low, interval.high), method=interval.method)


def _why_unranked(column: pd.Series | None, asked: int) -> str:
    if column is None:
        return "not measured"
    return "" if len(column) >= COVERAGE * asked else f"measured {len(column):,} of {count(asked, 'question')}"


def _common(columns: Iterable[pd.Series]) -> Any:
    import pandas as pd

    common = None
    for column in columns:
        common = column.index if common is None else common[common.isin(column.index)]
    return pd.Index([]) if common is None else common


def _cost_unit(contenders: Sequence[Contender], scores: Mapping[str, _Scores]) -> CostUnit | None:
    """USD where any has a price, else tokens where any counted them."""
    if any(each.usd is not None for each in contenders):
        return "usd"
    return "tokens" if any(each.of(TOKENS) is not None for each in scores.values()) else None


def _cost(contender: Contender, scores: Mapping[str, _Scores], unit: CostUnit | None) -> float | None:
    """What one question costs; None where that was not measured."""
    if unit != "tokens":
        return contender.usd
    column = scores[contender.name].of(TOKENS)
    return None if column is None else float(column.mean())
