"""Which domains went worst: one order, for the picture and for the description."""

from __future__ import annotations

from collections.abc import Mapping

from evaltrack.metrics.aggregate import LEVELS
from evaltrack.metrics.catalogue import HEADLINES

Means = Mapping[str, tuple[float, int]]
"""Mean and count by metric."""


def worst_domains(groups: Mapping[str, Means]) -> list[tuple[str, Means]]:
    """The domains among the groups, by pass rate, then by score, then the larger first; unmeasured ones last."""
    domains = [(name, means) for name, means in groups.items() if name not in LEVELS]
    return sorted(domains, key=lambda item: (*_values(item[1]), -_size(item[1]), item[0]))


def _values(means: Means) -> tuple[float, ...]:
    return tuple(means[name][0] if name in means else float("inf") for name in (score.metric for score in HEADLINES))


def _size(means: Means) -> int:
    return max((count for _, count in means.values()), default=0)
