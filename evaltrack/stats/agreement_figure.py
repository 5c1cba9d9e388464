"""One measure of agreement, with its interval or the reason there is none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import fsum
from typing import TYPE_CHECKING, Literal, TypeAlias

from evaltrack.stats.bootstrap import bca
from evaltrack.stats.pairs import distinct

if TYPE_CHECKING:
    from evaltrack.stats.pairs import Floats

How: TypeAlias = Literal["bca", "bca-grouped", "percentile", "all-equal", "one-pair"]

TAIL = 0.025
"""The share that a 95 % interval leaves out at either end."""

NO_PAIR = "no pair has a value on both sides"


@dataclass(frozen=True)
class Figure:
    """One measure of agreement over `n` pairs; `left_out` more lack a value.

    `low` to `high` is the 95 % bootstrap interval, which only an `Agreement` has; `method` says how: ``bca`` or
    ``bca-grouped`` (see `evaltrack.stats.bootstrap.bca`), ``percentile``, or ``all-equal`` and ``one-pair``, points
    that are no evidence. `reason`: why there is no value, or no interval.
    """

    value: float | None
    n: int
    left_out: int
    reason: str | None = None
    low: float | None = None
    high: float | None = None
    method: How | None = None


def mean_figure(values: Floats, left_out: int) -> Figure:
    """The mean of what was measured, without an interval."""
    n = len(values)
    return Figure(fsum(values) / n, n, left_out) if n else Figure(None, 0, left_out, NO_PAIR)


def with_bca(figure: Figure, values: Floats, resamples: int, seed: int) -> Figure:
    """The figure with the BCa interval of the mean that it is."""
    import numpy as np

    differences, counts, rounding = distinct(np.zeros(len(values)), values)
    if len(differences) == 1:
        return with_percentiles(figure, differences)
    low, high, method = bca(differences, counts, rounding, 1 - 2 * TAIL, resamples, seed)
    return replace(figure, low=low, high=high, method=method)


def with_percentiles(figure: Figure, resamples: Floats) -> Figure:
    """The figure with the percentiles of what it is in the resamples, or with why it has none."""
    import numpy as np

    defined = resamples[~np.isnan(resamples)]
    if (without := 1 - len(defined) / len(resamples)) > TAIL:
        return replace(figure, reason=f"no interval: {without:.1%} of the resamples have no value")
    low, high = (float(end) for end in np.quantile(defined, [TAIL, 1 - TAIL]))
    method: How = "one-pair" if figure.n == 1 else "percentile" if np.ptp(defined) else "all-equal"
    return replace(figure, low=low, high=high, method=method)
