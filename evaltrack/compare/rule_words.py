"""The gate's rules in sentences: how each metric went, what is allowed, and what asking again left open. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from evaltrack.compare.change import Asking, Change, Repeat
from evaltrack.compare.comparison import GroupDelta, MetricDelta
from evaltrack.compare.gate import Gate, is_worse
from evaltrack.metrics.catalogue import metric_form
from evaltrack.metrics.metric import ROUNDING
from evaltrack.records.amount import count, first_of, verb
from evaltrack.stats.significance import LEVEL


def tolerated_words(metric: MetricDelta) -> str:
    """``5 %`` of the baseline's value, ``0.05`` of the metric itself, ``10 points`` of a share; empty for none."""
    rule = metric.threshold
    if rule is None:
        return ""
    if rule.relative or metric_form(metric.name).form != "percent":
        return str(rule)
    return f"{100 * rule.amount:.4g} points"


def worse_way(metric: MetricDelta) -> str:
    """``drop``, or of what is better when lower ``rise``."""
    return "drop" if metric.higher_is_better else "rise"


def drop_share(metric: MetricDelta) -> str:
    """How much worse or better it is in per cent of the baseline's value: ``16.7``, ``10.04`` beside a limit of 10.

    With one decimal, or as many as tell on which side of the limit it lies. The baseline is not 0.
    """
    percent, rule = 100 * abs(metric.drop or 0.0), metric.threshold
    if rule is None or not rule.relative or (metric.drop or 0.0) < 0:
        return f"{percent:.1f}"
    limit = 100 * rule.amount
    beyond = percent > limit + ALIKE
    texts = (f"{percent:.{decimals}f}" for decimals in range(1, MOST_DECIMALS))
    return next((text for text in texts if (float(text) > limit + ALIKE) == beyond), f"{percent:.{MOST_DECIMALS}f}")


def exact_decimals(metric: MetricDelta) -> int:
    """How many more decimals its values need to tell on which side of a limit that is an amount they lie; most often 0.

    Values and difference are rounded each for itself, and all have to tell it.
    """
    rule, score = metric.threshold, metric_form(metric.name)
    worse = -metric.delta if metric.higher_is_better else metric.delta
    if rule is None or rule.relative or worse <= 0:
        return 0
    beyond = worse > rule.amount + ALIKE
    for more in range(MOST_DECIMALS):
        was, now, size = (score.written(value, more) for value in (metric.baseline, metric.candidate, worse))
        if all((each > rule.amount + ALIKE) == beyond for each in (abs(now - was), size)):
            return more
    return MOST_DECIMALS


ALIKE = 1e-9
"""Below this a difference comes from the rounding of means."""

MOST_DECIMALS = 6


def share_words(number: int, total: int) -> str:
    """``3 of 9 questions``, ``all 9 questions``, ``both questions``, ``the only question``."""
    if number < total:
        return f"{number:,} of {count(total, 'question')}"
    return {1: "the only question", 2: "both questions"}.get(total, f"all {count(total, 'question')}")


def all_words(number: int) -> str:
    """``all 5``, of two ``both``."""
    return "both" if number == 2 else f"all {number:,}"


def p_words(p_value: float) -> str:
    """``p = 0.62``, or ``p < 0.001``."""
    if p_value < 0.001:
        return "p < 0.001"
    return f"p = {p_value:.2f}" if p_value >= 0.0095 else f"p = {p_value:.3f}"


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


NAMED = 3
RECORD = "evaluate the baseline with --trials 5, or several times, so that there is a record"
LONGER_RECORD = "evaluate the baseline with more trials, or more often"


def unsettled_words(flips: Iterable[Change], asking: Asking) -> Iterator[str]:
    """A sentence on those that fail every time, one on those that fail most times, one on those with a record.

    Where there are several kinds one on all of them comes first.
    """
    unsettled = [(flip, flip.repeat) for flip in flips if flip.repeat is not None and flip.repeat.kind == "unsettled"]
    recorded: list[tuple[Change, Repeat]] = []
    always: list[tuple[Change, Repeat]] = []
    mostly: list[tuple[Change, Repeat]] = []
    for flip, repeat in unsettled:
        has_record = asking.scatter is not False and repeat.record_times
        (recorded if has_record else mostly if repeat.passed else always).append((flip, repeat))
    sentences = [_without_record(those, asking) for those in (always, mostly) if those]
    sentences += [_with_record(recorded)] if recorded else []
    if len(sentences) > 1:
        yield f"{_those(unsettled)} may have broken, or scatter: asking again does not tell"
    yield from sentences


def _without_record(unsettled: Sequence[tuple[Change, Repeat]], asking: Asking) -> str:
    times = "every time" if not unsettled[0][1].passed else "most times"
    fails = f"{_those(unsettled)} {verb(len(unsettled), 'fails', 'fail')} {times} again and passed once in the baseline"
    why = "answers scatter, or it was mended just before" if asking.scatter is False else "answers scatter"
    lucky = f"{asking.lucky:,} of the questions that were fixed fail every time too; " if asking.lucky else ""
    return f"{fails}; {why}; {lucky}{RECORD}"


def _with_record(unsettled: Sequence[tuple[Change, Repeat]]) -> str:
    repeats = [repeat for _, repeat in unsettled]
    again = f"{sum(each.failed for each in repeats):,} of {count(sum(each.times for each in repeats), 'time')}"
    before = f"{sum(each.record_failed for each in repeats):,} of {sum(each.record_times for each in repeats):,}"
    fails = f"{_those(unsettled)} failed {again} again, and {before} before"
    return f"{fails}; that {verb(len(unsettled), 'it fails', 'they fail')} more often is not shown; {LONGER_RECORD}"


def _those(unsettled: Sequence[tuple[Change, Repeat]]) -> str:
    """``4 questions (a, b, c, …)``."""
    ids = [flip.id for flip, _ in unsettled]
    return f"{count(len(ids), 'question')} ({first_of(ids, NAMED)})"
