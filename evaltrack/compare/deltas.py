"""Metrics of both sides over the common questions: means, wins and losses, intervals, groups."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from evaltrack.compare.comparison import GroupDelta, MetricDelta, Threshold
from evaltrack.compare.gate import Gate
from evaltrack.compare.pairing import flipped
from evaltrack.compare.side_columns import numbers
from evaltrack.errors import UsageError
from evaltrack.metrics.catalogue import HEADLINES, MetricTable
from evaltrack.metrics.metric import Score
from evaltrack.rows.fingerprints import NUM_EXPECTED
from evaltrack.stats.intervals import paired_interval
from evaltrack.stats.pairs import detectable_drop, difference_sd
from evaltrack.stats.quantiles import quantile, quantile_interval, swap_test
from evaltrack.stats.significance import holm, mcnemar_exact, sign_flip

if TYPE_CHECKING:
    import pandas as pd

GROUP_METRICS = tuple(score.metric for score in HEADLINES)


class Measure:
    """Means, intervals and counts over pairs."""

    def __init__(self, gate: Gate, left_out: set[str], k: int, resamples: int, table: MetricTable) -> None:
        self._gate, self._left_out, self._resamples, self._table = gate, left_out, resamples, table
        self._k, self._passing = k, "pass_rate" not in left_out

    def deltas(
        self,
        frame: pd.DataFrame,
        drops: Mapping[str, Threshold],
        names: Collection[str] | None = None,
        *,
        intervals: bool = True,
        judged: pd.DataFrame | None = None,
    ) -> Iterator[MetricDelta]:
        """Each metric that both sides measured on at least one common question.

        `judged` has more questions for what judges alone say: those whose expected sources were edited.
        """
        from numpy import isnan

        for name, score in self._table.by_metric.items():
            part = judged if judged is not None and score.judged_alone else frame
            if not score.compared or name in self._left_out or (names is not None and name not in names):
                continue
            if f"{score.name}_b" not in part:
                continue
            was, now = (numbers(part[f"{score.name}_{end}"]) for end in "bc")
            gaps = isnan(was), isnan(now)
            measured = len(part) - int(gaps[0].sum()), len(part) - int(gaps[1].sum())
            pairs = ~(gaps[0] | gaps[1])
            if not pairs.any():
                continue
            if not pairs.all():
                was, now = was[pairs], now[pairs]
            means = _of_run(was, score), _of_run(now, score)
            better = now > was if score.higher_is_better else now < was
            ties = int((now == was).sum())
            delta = MetricDelta(
                name=name,
                baseline=means[0],
                candidate=means[1],
                n=len(was),
                drop=_drop(*means, score.higher_is_better),
                wins=int(better.sum()),
                ties=ties,
                losses=len(was) - int(better.sum()) - ties,
                threshold=drops.get(name),
                measured=measured,
                reachable=_reachable(part, pairs, self._k) if name == "precision_at_k" else None,
                higher_is_better=score.higher_is_better,
                own=score.own,
            )
            if intervals or delta.threshold is not None:
                delta = self._with_interval(delta, was, now, score)
            yield replace(delta, over=self._gate.exceeded(delta, score.higher_is_better))

    def _with_interval(self, delta: MetricDelta, was: Any, now: Any, score: Score) -> MetricDelta:
        """The metric with its interval, and with its test where it has a rule."""
        if score.quantile is not None:
            return self._of_quantile(delta, was, now, score.quantile)
        interval = paired_interval(was, now, span=score.span, resamples=self._resamples)
        if interval is not None:
            delta = replace(delta, interval=(interval.low, interval.high), method=interval.method)
        if delta.threshold is not None:
            test = sign_flip(was, now)
            delta = replace(delta, p_value=test.p, changed=test.changed)
        return replace(delta, detectable=detectable_drop(difference_sd(was, now), delta.n))

    def _of_quantile(self, delta: MetricDelta, was: Any, now: Any, share: float) -> MetricDelta:
        interval = quantile_interval(was, now, share, resamples=self._resamples)
        delta = replace(delta, interval=interval, method=interval and "percentile")
        if delta.threshold is None:
            return delta
        p_value = swap_test(was, now, share, resamples=self._resamples)
        return replace(delta, p_value=p_value, changed=int((was != now).sum()))

    def groups(self, frame: pd.DataFrame) -> Iterator[GroupDelta]:
        """The metrics of each domain, difficulty and category; the p-values corrected within each kind."""
        unknown = set(self._gate.domain_drops) - set(frame["domain_c"].unique())
        if unknown:
            raise UsageError(f"`max_drop=` or `max_rise=`: no common question is of domain `{sorted(unknown)[0]}`")
        kinds: tuple[Literal["domain", "difficulty", "category"], ...] = ("domain", "difficulty", "category")
        for kind in kinds:
            groups = []
            for name, places in _places(frame[f"{kind}_c"]):
                drops = self._gate.domain_drops.get(str(name), {}) if kind == "domain" else {}
                names = {*GROUP_METRICS, *self._table.own_names, *drops}
                part = frame[self._columns(frame, names)].iloc[places]
                lost, won = (int(flipped(part, was=was).sum()) if self._passing else 0 for was in (True, False))
                metrics = tuple(self.deltas(part, drops, names, intervals=kind != "category"))
                p_value = mcnemar_exact(lost, won)
                groups.append(GroupDelta(kind, str(name), len(part), metrics, lost, won, p_value))
            corrected = holm({group.name: group.p_value for group in groups})
            yield from (replace(group, p_value=corrected[group.name]) for group in groups)

    def _columns(self, frame: pd.DataFrame, names: Collection[str]) -> list[str]:
        """The columns that these metrics need: the part of a group copies no other."""
        scores = (score.name for name, score in self._table.by_metric.items() if name in names)
        needed = {f"{column}_{end}" for column in ("passed", NUM_EXPECTED, *scores) for end in "bc"}
        return [column for column in frame if column in needed]


def _places(groups: pd.Series) -> Iterator[tuple[Any, Any]]:
    """Each group by its name, and where it stands: one after the other, as each takes much of a million questions."""
    import numpy as np

    codes = groups.array.codes
    for code, name in sorted(enumerate(groups.array.categories), key=lambda each: str(each[1])):
        if len(places := np.flatnonzero(codes == code)):
            yield name, places


def _reachable(frame: pd.DataFrame, pairs: Any, k: int) -> float | None:
    """The most that precision in the first k can be, where so many sources are expected; None if that is not known."""
    if f"{NUM_EXPECTED}_b" not in frame:
        return None
    return float((frame.loc[pairs, f"{NUM_EXPECTED}_b"].astype(float).clip(upper=k) / k).mean())


def _of_run(values: Any, score: Score) -> float:
    """The mean of the values, or their quantile."""
    return float(values.mean()) if score.quantile is None else quantile(values, score.quantile)


def _drop(was: float, now: float, higher_is_better: bool) -> float | None:
    worse = was - now if higher_is_better else now - was
    return worse / abs(was) if was else None
