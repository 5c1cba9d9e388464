"""Computes bootstrap intervals (BCa, bootstrap-t) of a mean from its distinct values and their counts.

`scipy.stats.bootstrap` draws value by value: 10,000 x n draws. The mean of a resample depends only on the counts of the
distinct values in it, and these counts are multinomial. Drawing the counts gives exactly the same distribution. Its
time grows with the number of distinct values, which is small for bounded scores. A mean over pairs depends only on the
distinct differences and their counts.

Sources: B. Efron, *Better bootstrap confidence intervals*, JASA 82 (1987); P. Hall, *The Bootstrap and Edgeworth
Expansion* (1992) for the studentised form.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scores: TypeAlias = Sequence[float] | NDArray[np.floating] | NDArray[np.integer] | NDArray[np.bool_]
    Floats: TypeAlias = NDArray[np.float64]
    Integers: TypeAlias = NDArray[np.int64]


Method: TypeAlias = Literal["bca", "bca-grouped"]

TAIL = 0.025
"""The share that a 95 % interval leaves out at either end."""

MAX_DISTINCT = 2048
"""The most distinct values that are resampled one by one. More are put into about as many groups."""

CELLS = 1 << 18
"""Counts drawn at a time: 2 MiB, so that memory does not grow with the number of resamples."""


def drawn_counts(counts: Integers, resamples: int, generator: np.random.Generator) -> Iterator[Integers]:
    """Yield the counts of each value in each resample, some resamples at a time, in the shape (resamples, values)."""
    step, n = max(1, CELLS // len(counts)), int(counts.sum())
    for start in range(0, resamples, step):
        yield generator.multinomial(n, counts / n, size=min(step, resamples - start))


def bca(values: Floats, counts: Integers, rounding: float, resamples: int, seed: int) -> tuple[float, float, Method]:
    """Return the ends of the 95 % BCa interval of the mean (Efron 1987), and the method: ``bca`` or ``bca-grouped``.

    More than `MAX_DISTINCT` values (times, tokens) are first put into that many groups of equal width. The counts of
    the groups are exact, and so are mean and variance of the draws inside a group, but these are taken as normal. The
    groups are so narrow that this moves the interval less than another seed does.

    A resampled mean that equals the observed one counts half as below it, the acceleration is the jackknife's, and
    quantiles are interpolated linearly: all as in ``scipy.stats.bootstrap``.
    """
    import numpy as np

    mean, variances = mean_of(values, counts), None
    scaled = (values - mean) / abs(values - mean).max()  # so that no cube underflows
    acceleration = float((counts * scaled**3).sum()) / (6 * float((counts * scaled**2).sum()) ** 1.5)
    method: Method = "bca"
    if len(values) > MAX_DISTINCT:
        method = "bca-grouped"
        group = np.floor((values - values[0]) / (values[-1] - values[0]) * MAX_DISTINCT)
        values, counts, variances = merge_values(values, counts, np.unique(group, return_index=True)[1])
    means = _resampled_means(values, counts, variances, resamples, seed)
    below = float((means < mean - rounding).mean() + (means <= mean + rounding).mean()) / 2
    low, high = np.quantile(means, _corrected_levels(below, acceleration, resamples))
    return float(low), float(high), method


def _resampled_means(values: Floats, counts: Integers, variances: Floats | None, resamples: int, seed: int) -> Floats:
    """Return the means of the resamples. `variances` are those inside groups; None if each group is one value."""
    import numpy as np

    generator, means = np.random.default_rng(seed), []
    for part in drawn_counts(counts, resamples, generator):
        means.append(means_of(part, values))
        if variances is not None:
            deviations = np.sqrt(means_of(part, variances) / counts.sum())
            means[-1] += generator.standard_normal(len(part)) * deviations
    return np.concatenate(means)


def _corrected_levels(below: float, acceleration: float, resamples: int) -> tuple[float, float]:
    """Return the levels of BCa's two quantiles. `below` is the share of resampled means below the observed one."""
    normal = NormalDist()
    half = 0.5 / resamples  # the precision of a share of 0 or 1
    bias = normal.inv_cdf(min(max(below, half), 1 - half))

    def level(tail: float) -> float:
        z = bias + normal.inv_cdf(tail)
        return normal.cdf(bias + z / max(1 - acceleration * z, 1e-12))  # beyond its pole: the last resample

    return level(TAIL), level(1 - TAIL)


def studentised(values: Floats, counts: Integers, resamples: int, seed: int) -> tuple[float, float] | None:
    """Return the ends of the 95 % bootstrap-t interval of the mean (Hall 1992); None if no resample varies.

    It corrects for skew, which Student's t does not. It holds from about five values on if they are distinct.
    """
    import numpy as np

    n, mean = int(counts.sum()), mean_of(values, counts)
    centred = values - mean
    deviation = sqrt(float((counts * centred**2).sum()) / (n - 1))
    resampled_counts = np.random.default_rng(seed).multinomial(n, counts / n, size=resamples)
    means = means_of(resampled_counts, centred)
    variances = ((resampled_counts * centred**2).sum(axis=1) - n * means**2) / (n - 1)
    varied = variances > (1e-9 * deviation) ** 2
    if not varied.any():
        return None
    ratios = means[varied] / np.sqrt(variances[varied])
    least, most = np.quantile(ratios, [TAIL, 1 - TAIL])
    return mean - float(most) * deviation, mean - float(least) * deviation


def means_of(counts: Integers, values: Floats) -> Floats:
    """Return the mean of each resample; `counts` has the shape (resamples, values)."""
    means: Floats = (counts * values).sum(axis=1) / counts.sum(axis=1)  # no matrix product: its last bits vary
    return means


ROUNDING = 1e-12
"""The distance below which numbers are equal, relative to the largest score: 0.6 - 0.4 equals 0.4 - 0.2."""


def distinct(baseline: Scores, candidate: Scores) -> tuple[Floats, Integers, float]:
    """Return the distinct differences in ascending order, their counts, and the distance that counts as rounding."""
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
    """Return mean, count and variance (divisor: the count) of each group of ascending values.

    `starts` holds the index of the first value of each group.
    """
    import numpy as np

    sizes = np.diff(starts, append=len(values))
    totals = np.add.reduceat(counts, starts)
    first = values[starts]
    offsets = np.add.reduceat(counts * (values - np.repeat(first, sizes)), starts) / totals
    means = first + offsets  # a group of one keeps its value to the bit
    variances = np.add.reduceat(counts * (values - np.repeat(means, sizes)) ** 2, starts) / totals
    return means, totals, variances


def mean_of(values: Floats, counts: Integers) -> float:
    """Return the mean of values with these counts."""
    return float((counts * values).sum() / counts.sum())
