"""Bootstrap intervals of a mean difference, from the counts of distinct differences.

Source: B. Efron, *Better bootstrap confidence intervals*, JASA 82 (1987); P. Hall, *The Bootstrap and Edgeworth
Expansion* (1992) for the studentised form.
"""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, TypeAlias

from evaltrack.stats.pairs import mean_of, merge_values

if TYPE_CHECKING:
    from evaltrack.stats.pairs import Floats, Integers

Method: TypeAlias = Literal["bca", "bca-grouped"]

MAX_DISTINCT = 2048
"""Distinct differences that are resampled one by one; more are put into about as many groups."""

CELLS = 1 << 18
"""Counts drawn at a time: 2 MiB, so that memory does not grow with the resamples."""


def bca(
    values: Floats, counts: Integers, rounding: float, confidence: float, resamples: int, seed: int
) -> tuple[float, float, Method]:
    """The ends of the BCa interval of the mean, and how it was had: ``bca``, or of groups of close values.

    The mean of n pairs drawn again depends only on how often each distinct difference is among them, and these counts
    are multinomial. So the counts are drawn: exactly what drawing pairs gives, in a time that goes with the number of
    distinct differences, of which bounded scores have few, and hardly with n.

    More than `MAX_DISTINCT` of them (times, tokens) are first put into that many groups of equal width. The counts of
    the groups are exact, and so are mean and variance of what is drawn inside a group, but it is taken as normal. A
    group is so narrow that this moves the interval less than another seed does.

    A resampled mean that equals the observed one counts half as below it; acceleration is the jackknife's; quantiles
    are interpolated linearly: all as in ``scipy.stats.bootstrap``.
    """
    mean, variances = mean_of(values, counts), None
    acceleration = _acceleration(values - mean, counts)
    method: Method = "bca"
    if len(values) > MAX_DISTINCT:
        method = "bca-grouped"
        values, counts, variances = merge_values(values, counts, equal_widths(values))
    means = _resampled_means(values, counts, variances, resamples, seed)
    below = float((means < mean - rounding).mean() + (means <= mean + rounding).mean()) / 2
    return *_corrected_quantiles(means, below, acceleration, confidence), method


def studentised(
    values: Floats, counts: Integers, confidence: float, resamples: int, seed: int
) -> tuple[float, float] | None:
    """The ends of the bootstrap-t interval of the mean; None where no resample varies.

    It corrects for skew, which Student's t does not, and so holds from some five values on where they are distinct.
    """
    import numpy as np

    n, mean = int(counts.sum()), mean_of(values, counts)
    centred = values - mean
    deviation = sqrt(float((counts * centred**2).sum()) / (n - 1))
    resampled_counts = np.random.default_rng(seed).multinomial(n, counts / n, size=resamples)
    means = (resampled_counts * centred).sum(axis=1) / n
    variances = ((resampled_counts * centred**2).sum(axis=1) - n * means**2) / (n - 1)
    varied = variances > (1e-9 * deviation) ** 2
    if not varied.any():
        return None
    ratios = means[varied] / np.sqrt(variances[varied])
    least, most = np.quantile(ratios, [(1 - confidence) / 2, (1 + confidence) / 2])
    return mean - float(most) * deviation, mean - float(least) * deviation


def equal_widths(values: Floats) -> Integers:
    """Where groups of equal width begin in ascending values.

    Not of equal count: n values can lie no further apart than sqrt(2 n) standard deviations, so that these groups are
    narrow whatever the tails are, and an outlier has its own.
    """
    import numpy as np

    group = np.floor((values - values[0]) / (values[-1] - values[0]) * MAX_DISTINCT)
    return np.flatnonzero(np.diff(group, prepend=-1))


def _acceleration(deviations: Floats, counts: Integers) -> float:
    """The jackknife's acceleration of a mean: leaving pair i out moves it by its deviation / (n - 1); that cancels."""
    import numpy as np

    scaled = deviations / np.abs(deviations).max()  # so that no cube is lost below the smallest float
    squares = counts * scaled * scaled
    total = float(squares.sum())
    return float((squares * scaled).sum()) / (6 * total * sqrt(total))


def _resampled_means(values: Floats, counts: Integers, variances: Floats | None, resamples: int, seed: int) -> Floats:
    """The means of the resamples; `variances` are those inside groups, None where each value is one."""
    import numpy as np

    generator = np.random.default_rng(seed)
    n = int(counts.sum())
    means = np.empty(resamples)
    step = max(1, CELLS // len(values))
    for start in range(0, resamples, step):
        part = slice(start, min(start + step, resamples))
        resampled_counts = generator.multinomial(n, counts / n, size=part.stop - start)
        # no matrix product: its last bits depend on the processor and its threads
        means[part] = (resampled_counts * values).sum(axis=1) / n
        if variances is not None:
            deviations = np.sqrt((resampled_counts * variances).sum(axis=1)) / n
            means[part] += generator.standard_normal(len(deviations)) * deviations
    return means


def _corrected_quantiles(means: Floats, below: float, acceleration: float, confidence: float) -> tuple[float, float]:
    """The quantiles of the resampled means that BCa takes as ends."""
    import numpy as np

    normal = NormalDist()
    half = 0.5 / len(means)  # a share of 0 or 1 is only known to that
    bias = normal.inv_cdf(min(max(below, half), 1 - half))

    def level(tail: float) -> float:
        z = bias + normal.inv_cdf(tail)
        return normal.cdf(bias + z / max(1 - acceleration * z, 1e-12))  # beyond its pole lies the last resample

    low, high = np.quantile(means, [level((1 - confidence) / 2), level((1 + confidence) / 2)])
    return float(low), float(high)
