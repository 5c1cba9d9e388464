"""Metrics of both sides over the common questions: means, wins and losses, intervals, groups."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal

from evaltrack.compare.comparison import GroupDelta, MetricDelta
from evaltrack.compare.gate import Gate, Threshold
from evaltrack.compare.pairing import flipped, numbers
from evaltrack.errors import UsageError
from evaltrack.metrics.catalogue import HEADLINES, MetricTable
from evaltrack.metrics.metric import Score
from evaltrack.records.stored_row import NUM_EXPECTED
from evaltrack.stats.intervals import paired_interval, quantile, quantile_interval, swap_test
from evaltrack.stats.significance import one_sided, sign_flip

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
    ) -> Iterator[MetricDelta]:
        """Each metric that both sides measured on at least one common question."""
        from numpy import isnan

        for name, score in self._table.by_metric.items():
            if not score.compared or name in self._left_out or (names is not None and name not in names):
                continue
            if f"{score.name}_b" not in frame:
                continue
            was, now = (numbers(frame[f"{score.name}_{end}"]) for end in "bc")
            gaps = isnan(was), isnan(now)
            measured = len(frame) - int(gaps[0].sum()), len(frame) - int(gaps[1].sum())
            pairs = ~(gaps[0] | gaps[1])
            if not pairs.any():
                continue
            if not pairs.all():
                was, now = was[pairs], now[pairs]
            means = _of_run(was, score), _of_run(now, score)
            better = now > was if score.higher_is_better else now < was
            changed = int((now != was).sum())
            delta = MetricDelta(
                name=name,
                baseline=means[0],
                candidate=means[1],
                n=len(was),
                drop=_drop(*means, score.higher_is_better),
                wins=int(better.sum()),
                losses=changed - int(better.sum()),
                changed=changed,
                threshold=drops.get(name),
                measured=measured,
                reachable=_reachable(frame, pairs, self._k) if name == "precision_at_k" else None,
                higher_is_better=score.higher_is_better,
                own=score.own,
            )
            if changed and (intervals or delta.threshold is not None):
                delta = self._with_interval(delta, was, now, score)
            if delta.threshold is not None:
                over = delta.threshold.exceeded(*means, higher_is_better=score.higher_is_better)
                delta = replace(delta, over=over, p_value=self._p_value(delta, was, now, score))
            yield delta

    def _with_interval(self, delta: MetricDelta, was: Any, now: Any, score: Score) -> MetricDelta:
        """The metric with the interval of its difference, within what the mean can be."""
        if score.quantile is not None:
            interval = quantile_interval(was, now, score.quantile, resamples=self._resamples)
            return replace(delta, interval=interval, method=interval and "percentile")
        made = paired_interval(was, now, span=score.span, resamples=self._resamples)
        if made is None:
            return delta
        low, high = made.low, made.high
        if not score.own:
            low = max(low, -delta.baseline)
            high = high if score.span is None else min(high, score.span - delta.baseline)
        return replace(delta, interval=(low, high), method=made.method)

    def _p_value(self, delta: MetricDelta, was: Any, now: Any, score: Score) -> float:
        """One-sided p of the loss."""
        if score.quantile is None:
            return one_sided(sign_flip(was, now).p, worse=delta.is_worse)
        return one_sided(swap_test(was, now, score.quantile, resamples=self._resamples), worse=delta.is_worse)

    def groups(self, frame: pd.DataFrame) -> Iterator[GroupDelta]:
        """The metrics of each domain, difficulty and category."""
        unknown = set(self._gate.domain_drops) - set(frame["domain_c"].unique())
        if unknown:
            raise UsageError(f"`max_drop=`: no common question is of domain `{sorted(unknown)[0]}`")
        kinds: tuple[Literal["domain", "difficulty", "category"], ...] = ("domain", "difficulty", "category")
        for kind in kinds:
            for name, part in frame.groupby(f"{kind}_c", observed=True):
                drops = self._gate.domain_drops.get(str(name), {}) if kind == "domain" else {}
                names = {*GROUP_METRICS, *self._table.own_names, *drops}
                lost, won = (int(flipped(part, was=was).sum()) if self._passing else 0 for was in (True, False))
                metrics = tuple(self.deltas(part, drops, names, intervals=kind != "category"))
                yield GroupDelta(kind, str(name), len(part), metrics, lost, won)


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
