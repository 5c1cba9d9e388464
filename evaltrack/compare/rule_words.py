"""The gate's rules on metrics in sentences: how each metric went, and what is allowed. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evaltrack.compare.comparison import GroupDelta, MetricDelta
from evaltrack.compare.evidence import is_worse
from evaltrack.compare.gate import Gate
from evaltrack.compare.share_words import p_words
from evaltrack.compare.tolerated import drop_share, exact_decimals, tolerated_words, worse_way
from evaltrack.metrics.catalogue import metric_form
from evaltrack.metrics.metric import ROUNDING
from evaltrack.stats.significance import LEVEL


class RuleWords:
    """The rules on metrics in sentences, under the titles that people read."""

    def __init__(self, gate: Gate, k: int) -> None:
        self._gate, self._k = gate, k

    def broken(self, metrics: Sequence[MetricDelta], groups: Sequence[GroupDelta]) -> Iterator[str]:
        """Each rule that was broken: ``MRR went from 0.900 to 0.750, 16.7 % worse (allowed: 10 %)``."""
        significant = self._gate.kind == "significant"
        for metric, where in _ruled(metrics, groups):
            if metric.regressed:
                p_value = metric.p_value if significant else None
                yield self._moved(metric, where, "" if p_value is None else f"exact test: {p_words(p_value)}")

    def not_shown(self, metric: MetricDelta) -> str:
        """A drop that exceeds its rule, and that chance explains."""
        level = f"it is shown where p is below {LEVEL:g}, corrected for several rules"
        p_value = "" if metric.p_value is None else f" (exact test: {p_words(metric.p_value)}; {level})"
        return f"{self._moved(metric, '')}, which is not shown to be more than chance{p_value}"

    def held(self, metrics: Sequence[MetricDelta], groups: Sequence[GroupDelta]) -> Iterator[str]:
        """Each rule that holds: ``MRR fell by 0.7 %; the gate allows a drop of 10 %``."""
        significant = self._gate.kind == "significant"
        for metric, where in self._holding(metrics, groups):
            if not _is_left_out(metric):
                limit = _significant_limit(metric) if significant else f"; {_limit(metric)}"
                yield f"{self._title(metric)}{where} {_course(metric)}{_of_part(metric)}{limit}"

    def left_out(self, metrics: Sequence[MetricDelta], groups: Sequence[GroupDelta]) -> list[str]:
        """Each that holds on the questions measured in both, where those that were lost may have lifted the mean.

        As in ``MRR: the change is left out, 3 lost; on the 55 measured in both it keeps to the drop of 10 % that …``.
        """
        return [
            f"{self._title(metric)}{where}: the change is left out, {metric.num_lost:,} lost; "
            f"on the {metric.n:,} measured in both it keeps to the {self._allowed(metric)}"
            for metric, where in self._holding(metrics, groups)
            if _is_left_out(metric)
        ]

    def _holding(
        self, metrics: Sequence[MetricDelta], groups: Sequence[GroupDelta]
    ) -> Iterator[tuple[MetricDelta, str]]:
        for metric, where in _ruled(metrics, groups):
            if not metric.regressed and not (metric.over and not where):
                yield metric, where

    def _allowed(self, metric: MetricDelta) -> str:
        """``drop of 10 % that the gate allows``."""
        amount = "that can be chance and" if self._gate.kind == "significant" else f"of {tolerated_words(metric)} that"
        return f"{worse_way(metric)} {amount} the gate allows"

    def _moved(self, metric: MetricDelta, where: str, limit: str = "") -> str:
        score = metric_form(metric.name)
        more = exact_decimals(metric)
        change = f"{score.shown(metric.baseline, more)} to {score.shown(metric.candidate, more)}"
        drop = f", {drop_share(metric)} % worse" if metric.drop is not None else ""
        return (
            f"{self._title(metric)}{where} went from {change}{drop}{_of_part(metric)} "
            f"({limit or f'allowed: {tolerated_words(metric)}'})"
        )

    def _title(self, metric: MetricDelta) -> str:
        return metric_form(metric.name).title.format(k=self._k)


def _ruled(metrics: Sequence[MetricDelta], groups: Sequence[GroupDelta]) -> Iterator[tuple[MetricDelta, str]]:
    """The metrics that have a rule, and where it applies."""
    yield from ((metric, "") for metric in metrics if metric.threshold)
    yield from ((m, f" in {group.name}") for group in groups for m in group.metrics if m.threshold)


def _is_left_out(metric: MetricDelta) -> bool:
    """Whether the tables leave its change out, as questions were lost that may have lifted the mean."""
    was, now, _ = metric_form(metric.name).course(metric.baseline, metric.candidate)
    return not metric.shows_change and was != now


def _of_part(metric: MetricDelta) -> str:
    """`` on the 55 measured in both``; empty where all that the baseline measured are."""
    return f" on the {metric.n:,} measured in both" if metric.num_lost else ""


def _course(metric: MetricDelta) -> str:
    """``fell 0.7 %`` of the baseline's value, ``rose 0.050`` where the rule is an amount, or ``did not change``."""
    score, absolute = metric_form(metric.name), metric.threshold is not None and not metric.threshold.relative
    if abs(metric.delta) < ROUNDING:
        return "did not change"
    way = "rose" if metric.delta > 0 else "fell"
    share = 100 * abs(metric.drop) if metric.drop is not None else None
    if absolute or share is None:
        size = score.change(abs(metric.delta), exact_decimals(metric)).removeprefix("+")
        return f"{way} by {'less than 0.001' if size == '≈ 0' else size}"
    return f"{way} by {drop_share(metric) if share >= SMALLEST else f'less than {SMALLEST}'} %"


def _limit(metric: MetricDelta) -> str:
    """``the gate allows a drop of 5 %``, which is what the rule is about whichever way the metric went."""
    return f"the gate allows a {worse_way(metric)} of {tolerated_words(metric)}"


def _significant_limit(metric: MetricDelta) -> str:
    """The same of a gate that any loss breaks that is shown."""
    if is_worse(metric):
        return ", which is not shown to be more than chance"
    return f"; the gate allows any {worse_way(metric)} that can be chance"


SMALLEST = 0.1
"""Per cent below which a change is not written as a number."""
