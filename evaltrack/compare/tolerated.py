"""How large a drop of a metric is tolerated, in words."""

from __future__ import annotations

from evaltrack.compare.comparison import MetricDelta
from evaltrack.metrics.formats import metric_form


def tolerated_words(metric: MetricDelta) -> str:
    """``5 %`` of the baseline's value, ``0.05`` of the metric itself, ``10 points`` of a share; empty for none."""
    rule = metric.threshold
    if rule is None:
        return ""
    if rule.relative or metric_form(metric.name).form != "percent":
        return str(rule)
    return f"{100 * rule.amount:.4g} points"
