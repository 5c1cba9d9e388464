"""Computes 95 % intervals of a share, and of paired differences of means and of quantiles; tests such quantiles.

`baseline` and `candidate` hold one number for each question, in the same order. A difference is candidate - baseline,
in the unit of the score. Questions that were not measured on both sides are left out before. Nothing depends on the
order of the pairs. Random numbers come from a seed: the same numbers, seed, release of NumPy and kind of machine give
the same bits.

`scipy.stats.bootstrap` draws value by value: 10,000 x n draws. The mean of a resample depends only on the counts of the
distinct differences in it, and these counts are multinomial. Drawing the counts gives exactly the same distribution.
Its time grows with the number of distinct differences, which is small for bounded scores.

Sources: B. Efron, JASA 82 (1987), for BCa; P. Hall, *The Bootstrap and Edgeworth Expansion* (1992), for the studentised
form; Student, Biometrika 6 (1908); A. Agresti & Y. Min, Biometrics 61 (2005), and D. Bonett & R. Price, Journal of
Educational and Behavioral Statistics 37 (2012), for the added pairs; T. Hesterberg, The American Statistician 69
(2015), section 3.2, for the width of a bootstrap of few values; E. Wilson, JASA 22 (1927), for shares.

Quantiles are by nearest rank (Hyndman and Fan 1996, definition 1), so that each is a measured value.
`scipy.stats.permutation_test` needs a minute for the swaps of 100,000 pairs that take 3 s here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from math import ceil, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scores: TypeAlias = Sequence[float] | NDArray[np.floating] | NDArray[np.integer] | NDArray[np.bool_]
    Floats: TypeAlias = NDArray[np.float64]
    Integers: TypeAlias = NDArray[np.int64]


TAIL = 0.025
"""The share that a 95 % interval leaves out at either end."""

MAX_DISTINCT = 2048
"""The most distinct values that are resampled. The mean of more is taken as normal."""

CELLS = 1 << 18
"""Counts drawn at a time: 2 MiB, so that memory does not grow with the number of resamples."""


def drawn_counts(counts: Integers, resamples: int, generator: np.random.Generator) -> Iterator[Integers]:
    """Yield the counts of each value in each resample, some resamples at a time, in the shape (resamples, values)."""
    step, n = max(1, CELLS // len(counts)), int(counts.sum())
    for start in range(0, resamples, step):
        yield generator.multinomial(n, counts / n, size=min(step, resamples - start))


def bca(values: Floats, counts: Integers, rounding: float, resamples: int, seed: int) -> tuple[float, float]:
    """Return the ends of the 95 % BCa interval of the mean (Efron 1987).

    A resampled mean that equals the observed one counts half as below it, the acceleration is the jackknife's, and
    quantiles are interpolated linearly: all as in ``scipy.stats.bootstrap``.
    """
    import numpy as np

    mean, generator = mean_of(values, counts), np.random.default_rng(seed)
    scaled = (values - mean) / abs(values - mean).max()  # so that no cube underflows
    acceleration = float((counts * scaled**3).sum()) / (6 * float((counts * scaled**2).sum()) ** 1.5)
    means = np.concatenate([means_of(part, values) for part in drawn_counts(counts, resamples, generator)])
    below = float((means < mean - rounding).mean() + (means <= mean + rounding).mean()) / 2
    low, high = np.quantile(means, _corrected_levels(below, acceleration, resamples))
    return float(low), float(high)


def _corrected_levels(below: float, acceleration: float, resamples: int) -> tuple[float, float]:
    """Return the levels of BCa's two quantiles. `below` is the share of resampled means below the observed one."""
    normal = NormalDist()
    half = 0.5 / resamples  # the precision of a share of 0 or 1
    bias = normal.inv_cdf(min(max(below, half), 1 - half))

    def level(tail: float) -> float:
        z = bias + normal.inv_cdf(tail)
        return normal.cdf(bias + z / max(1 - acceleration * z, 1e-12))  # beyond its pole: the last resample

    return level(TAIL), level(1 - TAIL)


def studentised(values: Floats, counts: Integers, resamples: int, seed: int) -> tuple[float, float]:
    """Return the ends of the 95 % bootstrap-t interval of the mean (Hall 1992).

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
    differences = after - before
    rounding = ROUNDING * max(float(np.abs(side).max(initial=0)) for side in (before, after))
    values, counts = np.unique(differences, return_counts=True)
    starts = np.flatnonzero(np.diff(values, prepend=-np.inf) > rounding)
    return *merge_values(values, counts.astype(np.int64), starts), rounding


def merge_values(values: Floats, counts: Integers, starts: Integers) -> tuple[Floats, Integers]:
    """Return mean and count of each group of ascending values.

    `starts` holds the index of the first value of each group.
    """
    import numpy as np

    sizes = np.diff(starts, append=len(values))
    totals = np.add.reduceat(counts, starts)
    first = values[starts]
    offsets = np.add.reduceat(counts * (values - np.repeat(first, sizes)), starts) / totals
    return first + offsets, totals  # a group of one keeps its value to the bit


def mean_of(values: Floats, counts: Integers) -> float:
    """Return the mean of values with these counts."""
    return float((counts * values).sum() / counts.sum())


MIN_PAIRS = 5
"""The fewest pairs with an interval. With fewer pairs no interval has the coverage that it promises."""

RESAMPLED_PAIRS, RESAMPLED_CHANGES = 100, 30
"""The numbers of pairs and of changed pairs from which resampling has the coverage that it promises."""

CONTINUOUS = 0.8
"""Share of distinct differences among few pairs from which they are taken as continuous."""

Method: TypeAlias = Literal["bca", "student-t", "bootstrap-t", "adjusted-t", "percentile"]


@dataclass(frozen=True)
class Interval:
    """A confidence interval of a difference, `low` to `high`, in the unit of the score, and its `method`.

    - ``bca``: bootstrap, every distinct difference resampled exactly.
    - ``student-t``: Student's t: thousands of different differences, as of times and tokens.
    - ``bootstrap-t``: studentised bootstrap, or Student's t if that is wider, both widened because a bootstrap of few
      pairs is too narrow: few pairs, hardly two alike.
    - ``adjusted-t``: Student's t after two pairs were added, one in each direction: few pairs or few changes.
    - ``percentile``: bootstrap of a quantile.
    """

    low: float
    high: float
    method: Method


def paired_interval(
    baseline: Scores, candidate: Scores, *, span: float | None = None, resamples: int = 10_000, seed: int = 0
) -> Interval | None:
    """Return the interval of the mean difference, candidate - baseline, by a method valid for the number of pairs.

    None below `MIN_PAIRS` pairs, and if nothing differs and the scores have no `span`.

    With many pairs and changes it is the BCa bootstrap (Efron 1987). With few, resampling never draws changes that did
    not occur yet, and its interval is too narrow: a point if all of 50 questions stayed the same. So one pair is added
    in each direction, somewhat larger than the largest change. This is conservative if scores take few values.
    `scripts/coverage` measures how often each interval holds the true mean.

    Args:
        baseline: n scores, finite.
        candidate: n scores, finite, of the same questions in the same order.
        span: The largest possible difference, as 1 for scores in [0, 1]; None if there is no bound.
        resamples: The number of resamples, at least 1. Below some hundreds the ends are rough.
        seed: The seed of the random numbers, not negative.
    """
    values, counts, rounding = distinct(baseline, candidate)
    n, changes = int(counts.sum()), int(counts[abs(values) > rounding].sum())
    if n < MIN_PAIRS or (not changes and span is None):
        return None
    if n >= RESAMPLED_PAIRS and changes >= RESAMPLED_CHANGES and 1 < len(values) <= MAX_DISTINCT:
        return Interval(*bca(values, counts, rounding, resamples, seed), "bca")
    method: Method = "adjusted-t"
    if len(values) > MAX_DISTINCT:
        (low, high), method = _student(values, counts), "student-t"
    elif len(values) >= CONTINUOUS * n:
        ends, student = studentised(values, counts, resamples, seed), _student(values, counts)
        mean, wider = mean_of(values, counts), sqrt(n / (n - 1))
        low = mean - (mean - min(ends[0], student[0])) * wider
        high = mean + (max(ends[1], student[1]) - mean) * wider
        method = "bootstrap-t"
    else:
        low, high = _adjusted(values, counts, changes, span)
    return Interval(low, high, method) if span is None else Interval(max(low, -span), min(high, span), method)


def _student(values: Floats, counts: Integers) -> tuple[float, float]:
    n, mean = int(counts.sum()), mean_of(values, counts)
    half = _t_quantile(n - 1) * sqrt(float((counts * (values - mean) ** 2).sum()) / (n - 1) / n)
    return mean - half, mean + half


def _adjusted(values: Floats, counts: Integers, changes: int, span: float | None) -> tuple[float, float]:
    """Return Student's t interval with one more pair in each direction, which is larger the fewer changes there are."""
    largest = max(abs(float(values[0])), abs(float(values[-1])))
    pseudo_change = largest * (1 + 2 / changes) if changes else span or 0.0
    if span is not None:
        pseudo_change = max(largest, min(pseudo_change, span))
    n = int(counts.sum()) + 2
    mean = float((counts * values).sum()) / n
    squares = float((counts * (values - mean) ** 2).sum()) + (pseudo_change - mean) ** 2 + (pseudo_change + mean) ** 2
    half = _t_quantile(n - 3) * sqrt(squares / (n - 1) / n)
    return mean - half, mean + half


@cache
def _t_quantile(freedom: int) -> float:
    """Return the number of standard errors that hold the middle 95 % of Student's t."""
    from scipy.special import stdtrit

    return float(stdtrit(freedom, 1 - TAIL))


def share_interval(share: float, n: int) -> tuple[float, float]:
    """Return the 95 % interval of a share of `n` yes-or-no outcomes, in [0, 1] (Wilson 1927, score interval).

    It does not use scipy: every run's report shows it, and loads no scipy.
    """
    z = 1.959963984540054
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, middle - half), min(1.0, middle + half)


BEYOND = 5
"""Values that must be on either side of a quantile with an interval: 100 values for the 95th percentile."""

WORK = 100_000_000
"""Values that are drawn for one interval or test. More pairs get fewer samples, at least `FEWEST`."""

FEWEST = 400


def quantile(values: Floats, share: float) -> float:
    """Return the least value that at least a `share` of the values do not exceed; `share` is in (0, 1]."""
    import numpy as np

    place = max(0, ceil(len(values) * share - 1))
    return float(np.partition(values, place)[place])  # np.quantile takes ten times as long


def quantile_interval(
    baseline: Floats, candidate: Floats, share: float, *, resamples: int, seed: int = 0
) -> Interval | None:
    """Return the 95 % interval of the difference of a quantile, candidate - baseline.

    It is the percentile bootstrap over pairs (Efron 1979). None if fewer than `BEYOND` values are on either side of the
    quantile.
    """
    import numpy as np

    n, generator = len(baseline), np.random.default_rng(seed)
    if n * min(share, 1 - share) < BEYOND - 1e-9:
        return None
    samples = (generator.integers(0, n, n) for _ in range(_samples(n, resamples)))
    differences = [quantile(candidate[chosen], share) - quantile(baseline[chosen], share) for chosen in samples]
    low, high = np.quantile(differences, [0.025, 0.975])
    return Interval(float(low), float(high), "percentile")


def swap_test(baseline: Floats, candidate: Floats, share: float, *, resamples: int, seed: int = 0) -> float:
    """Return the two-sided p of a paired randomization test of the difference of the quantiles.

    If neither side differs, the two values of a question are as likely to be swapped. p is the share of swaps whose
    difference is at least as far from 0 as the observed one, which is counted among them (Phipson and Smyth 2010).
    """
    import numpy as np

    n, generator = len(baseline), np.random.default_rng(seed)
    seen, samples = abs(quantile(candidate, share) - quantile(baseline, share)), _samples(n, resamples)
    as_far = 0
    for _ in range(samples):
        swap = generator.random(n) < 0.5
        was, now = np.where(swap, candidate, baseline), np.where(swap, baseline, candidate)
        as_far += abs(quantile(now, share) - quantile(was, share)) >= seen - 1e-12
    return (as_far + 1) / (samples + 1)


def _samples(n: int, wanted: int) -> int:
    return min(wanted, max(FEWEST, WORK // max(n, 1)))
