"""How the values of any metric are written: of ours, of the latencies, and of scores of one's own."""

from __future__ import annotations

from functools import lru_cache

from evaltrack.metrics.catalogue import BY_METRIC, BY_NAME
from evaltrack.metrics.latencies import LATENCIES
from evaltrack.metrics.metric import Score

_LATENCIES = {score.metric: score for score in LATENCIES}


def named_score(name: str) -> Score | None:
    """The record of a metric or score of ours."""
    return BY_METRIC.get(name) or BY_NAME.get(name) or _LATENCIES.get(name)


@lru_cache(maxsize=256)
def metric_form(name: str) -> Score:
    """The record that writes its values; of one's own one that writes three decimals under its own name."""
    title = name.replace("{", "{{").replace("}", "}}")
    return named_score(name) or Score(name, name, title, "", depends_on=frozenset(), span=None)
