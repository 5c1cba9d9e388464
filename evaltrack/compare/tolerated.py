"""How large a drop of a metric is tolerated, in words."""

from __future__ import annotations

from evaltrack.compare.comparison import MetricDelta
from evaltrack.metrics.catalogue import metric_form


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
