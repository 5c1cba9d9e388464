"""Paired differences as distinct values and how often each occurs, which is all that a mean over them depends on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scores: TypeAlias = Sequence[float] | NDArray[np.floating] | NDArray[np.integer] | NDArray[np.bool_]
    Floats: TypeAlias = NDArray[np.float64]
    Integers: TypeAlias = NDArray[np.int64]

ROUNDING = 1e-12
"""Numbers closer than this, relative to the largest score, are one: 0.6 - 0.4 and 0.4 - 0.2 are one difference."""


def distinct(baseline: Scores, candidate: Scores) -> tuple[Floats, Integers, float]:
    """The distinct differences from the least to the largest, how often each occurs, and what counts as rounding."""
    import numpy as np

    before, after = np.asarray(baseline, dtype=np.float64), np.asarray(candidate, dtype=np.float64)
    if before.ndim != 1 or before.shape != after.shape:
        shapes = f"the baseline's scores have shape {before.shape}, the candidate's {after.shape}"
        raise ValueError(f"{shapes}; give two lists of one number a question, of the same questions")
    with np.errstate(invalid="ignore", over="ignore"):
        differences = after - before
    if len(bad := np.flatnonzero(~np.isfinite(differences))):
        pair = f"pair {bad[0]} (from 0) is {before[bad[0]]} and {after[bad[0]]}"
        raise ValueError(f"{pair}; leave out what was not measured on both sides")
    rounding = ROUNDING * max(float(np.abs(side).max(initial=0)) for side in (before, after))
    values, counts = np.unique(differences, return_counts=True)
    starts = np.flatnonzero(np.diff(values, prepend=-np.inf) > rounding)
    values, counts, _ = merge_values(values, counts.astype(np.int64), starts)
    return values, counts, rounding


def merge_values(values: Floats, counts: Integers, starts: Integers) -> tuple[Floats, Integers, Floats]:
    """Means, counts and variances (divisor: the count) of the groups of ascending values that begin at `starts`."""
    import numpy as np

    sizes = np.diff(starts, append=len(values))
    totals = np.add.reduceat(counts, starts)
    first = values[starts]
    offsets = np.add.reduceat(counts * (values - np.repeat(first, sizes)), starts) / totals
    means = first + offsets  # a group of one keeps its value to the bit
    variances = np.add.reduceat(counts * (values - np.repeat(means, sizes)) ** 2, starts) / totals
    return means, totals, variances


def mean_of(values: Floats, counts: Integers) -> float:
    """The mean of values that occur so often."""
    return float((counts * values).sum() / counts.sum())
