"""How far a difference between two runs can be trusted: pure functions over paired scores, counts and p-values.

Conventions, the same for every function here:

- `baseline` and `candidate` hold one number for each question, in the same order; a difference is candidate - baseline,
  in the unit of the score. Questions that were not measured on both sides are left out before.
- Nothing depends on the order of the pairs. What is drawn at random is drawn from a seed: the same numbers, seed,
  release of NumPy and kind of machine give the same bits.
- `confidence` and `power` are shares, as 0.95 and 0.8.

Sources: B. Efron, *Better bootstrap confidence intervals*, JASA 82 (1987); Q. McNemar, Psychometrika 12 (1947), in its
exact form; S. Holm, Scandinavian Journal of Statistics 6 (1979).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Scores: TypeAlias = Sequence[float] | NDArray[np.floating] | NDArray[np.integer] | NDArray[np.bool_]
    Floats: TypeAlias = NDArray[np.float64]
    Integers: TypeAlias = NDArray[np.int64]

MAX_DISTINCT = 2048
"""Distinct differences that are resampled one by one; more are put into about as many groups."""

CELLS = 1 << 18
"""Counts drawn at a time: 2 MiB, so that memory does not grow with the resamples."""

ROUNDING = 1e-12
"""Numbers closer than this, relative to the largest score, are one: 0.6 - 0.4 and 0.4 - 0.2 are one difference."""

Method: TypeAlias = Literal["bca", "bca-grouped", "all-equal", "one-pair"]


@dataclass(frozen=True)
class Interval:
    """A confidence interval of a mean difference, `low` to `high`, in the unit of the score; `method` says how.

    - ``bca``: bootstrap, every distinct difference resampled exactly.
    - ``bca-grouped``: bootstrap of groups of close differences; see `paired_interval`.
    - ``all-equal``: a point, because all differences are equal. No resample could differ.
    - ``one-pair``: a point that is the one difference there is, and says nothing of how it would vary.

    A point has no width: that it lies off 0 is no evidence.
    """

    low: float
    high: float
    method: Method


def paired_interval(
    baseline: Scores, candidate: Scores, *, confidence: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> Interval | None:
    """The BCa bootstrap interval of the mean difference, candidate - baseline (Efron 1987); None without any pair.

    The mean of n pairs drawn again depends only on how often each distinct difference is among them, and these counts
    are multinomial. So the counts are drawn: exactly what drawing pairs gives, in a time that goes with the number of
    distinct differences, of which bounded scores have few, and hardly with n.

    More than `MAX_DISTINCT` of them (times, tokens) are first put into that many groups of equal width. The counts of
    the groups are exact, and so are mean and variance of what is drawn inside a group, but it is taken as normal. A
    group is so narrow that this moves the interval less than another seed does.

    A resampled mean that equals the observed one counts half as below it; acceleration is the jackknife's; quantiles
    are interpolated linearly: all as in ``scipy.stats.bootstrap``. One pair, or differences that are all equal, give a
    point, see `Interval`. Of few pairs (below some 20) the interval is too narrow, as with any bootstrap. Memory is a
    few MiB beside a few copies of the input.

    Args:
        baseline: n scores, finite.
        candidate: n scores, finite, of the same questions in the same order.
        confidence: share of such intervals that hold the true mean difference; above 0, below 1.
        resamples: how often to resample, at least 1. Below some hundreds the ends are rough.
        seed: of the random numbers, not negative.

    Raises:
        ValueError: The lengths differ, a score is NaN or infinite, or an option is out of its range.
    """
    _check_share("confidence", confidence)
    if resamples < 1:
        raise ValueError(f"resamples is {resamples}; an interval needs at least 1, better 10000")
    values, counts, rounding = _distinct(baseline, candidate)
    if not len(values):
        return None
    if len(values) == 1:
        return Interval(float(values[0]), float(values[0]), "one-pair" if counts[0] == 1 else "all-equal")
    mean = _mean(values, counts)
    acceleration = _acceleration(values - mean, counts)
    variances = None
    method: Method = "bca"
    if len(values) > MAX_DISTINCT:
        values, counts, variances = _merged(values, counts, _equal_widths(values))
        method = "bca-grouped"
    means = _resampled_means(values, counts, variances, resamples, seed)
    below = float((means < mean - rounding).mean() + (means <= mean + rounding).mean()) / 2
    low, high = _corrected_quantiles(means, below, acceleration, confidence)
    return Interval(low, high, method)


def difference_sd(baseline: Scores, candidate: Scores) -> float | None:
    """The standard deviation of the paired differences (divisor n - 1), in the unit of the score; None below two pairs.

    Raises:
        ValueError: The lengths differ, or a score is NaN or infinite.
    """
    values, counts, _ = _distinct(baseline, candidate)
    n = int(counts.sum())
    if n < 2:
        return None
    return sqrt(float((counts * (values - _mean(values, counts)) ** 2).sum()) / (n - 1))


def detectable_drop(sd: float | None, n: int, *, power: float = 0.8, confidence: float = 0.95) -> float | None:
    """The smallest true drop of a mean that a set of n questions would show, with probability `power`.

    It is ``(z(1 - (1 - confidence) / 2) + z(power)) * sd / sqrt(n)``, z the normal quantile: where the mean truly drops
    by this much, a two-sided test at 1 - confidence finds it in `power` of all such runs. What is smaller is missed
    more often than that, so finding nothing is no proof that nothing is there. With the defaults 2.80 standard errors.
    Below some 30 questions the normal approximation gives too small a drop.

    None where it cannot be said: below two questions, or where `sd` is None or 0. Differences that are all equal, as of
    a run against itself, show nothing of how they vary; 0 would claim that any drop would be found.

    Args:
        sd: standard deviation of the paired differences, in the unit of the score; `difference_sd` gives it.
        n: number of questions. Another than the one `sd` is from tells what a set of that size would show.
        power: at least 0.5, below 1.
        confidence: above 0, below 1.

    Raises:
        ValueError: A number is out of its range.
    """
    _check_share("confidence", confidence)
    if not 0.5 <= power < 1:
        raise ValueError(f"power is {power}; it must be at least 0.5 and below 1, as 0.8")
    if n < 0:
        raise ValueError(f"n is {n}; it counts questions and cannot be negative")
    if sd is not None and not (isfinite(sd) and sd >= 0):
        raise ValueError(f"sd is {sd}; a standard deviation is finite and not negative")
    if n < 2 or not sd:
        return None
    quantile = NormalDist().inv_cdf
    return (quantile((1 + confidence) / 2) + quantile(power)) * sd / sqrt(n)


def share_interval(share: float, n: int) -> tuple[float, float]:
    """The 95 % interval of a share of `n` yes-or-no outcomes, in [0, 1] (Wilson 1927, score interval).

    Args:
        share: What was observed, in [0, 1].
        n: Over how many outcomes, at least 1.

    Raises:
        ValueError: an argument is out of its range.
    """
    if not 0 <= share <= 1 or n < 1:
        raise ValueError(f"a share of {share} over {n} outcomes; it lies in [0, 1], over at least 1")
    z = 1.959963984540054
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * (share * (1 - share) / n + z * z / (4 * n * n)) ** 0.5
    return max(0.0, middle - half), min(1.0, middle + half)


def mcnemar_exact(b: int, c: int) -> float:
    """McNemar's exact two-sided p: were a flip as likely either way, how likely is a split at least as uneven as this.

    It is ``min(1, 2 * P(X <= min(b, c)))``, X binomial of b + c flips at 1/2; in [0, 1], and 1 where nothing flipped.
    Computed in integers and rounded once, at the end.

    Args:
        b: questions that went from pass to fail.
        c: questions that went from fail to pass.

    Raises:
        ValueError: A count is negative.
    """
    if b < 0 or c < 0:
        raise ValueError(f"{b} and {c} flips; counts cannot be negative")
    n, fewer = b + c, min(b, c)
    # the binomial coefficients outwards from the middle one, relative to it, to beyond what a float can hold: of a
    # million flips some thousands, with 200 bits to spare for rounding
    successes, term, whole, tail = n // 2, 1 << 1300, 0, 0
    while term:
        whole += term if 2 * successes == n else 2 * term
        tail += term if successes <= fewer else 0
        term = term * successes // (n - successes + 1)
        successes -= 1
    return min(1.0, 2 * tail / whole)


def holm(p_values: Mapping[str, float]) -> dict[str, float]:
    """p-values adjusted for being several, by Holm's step-down: compare each with the one level, as 0.05.

    The smallest of m is multiplied by m, the next by m - 1, and so on; none falls below the one before it, none exceeds
    1. The chance that any true null hypothesis among the m is rejected then stays within the level, whatever the
    dependence between them. Names and their order stay.

    Raises:
        ValueError: A p-value is NaN or not in [0, 1].
    """
    for name, p in p_values.items():
        if not 0 <= p <= 1:
            raise ValueError(f"the p-value of `{name}` is {p}; it must be in [0, 1]")
    adjusted = dict.fromkeys(p_values, 0.0)
    reached = 0.0
    for rank, name in enumerate(sorted(p_values, key=p_values.__getitem__)):
        reached = max(reached, min(1.0, (len(p_values) - rank) * float(p_values[name])))
        adjusted[name] = reached
    return adjusted


def _check_share(name: str, share: float) -> None:
    if not 0 < share < 1:
        raise ValueError(f"{name} is {share}; it must be above 0 and below 1, as 0.95")


def _distinct(baseline: Scores, candidate: Scores) -> tuple[Floats, Integers, float]:
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
    values, counts, _ = _merged(values, counts.astype(np.int64), starts)
    return values, counts, rounding


def _merged(values: Floats, counts: Integers, starts: Integers) -> tuple[Floats, Integers, Floats]:
    """Means, counts and variances (divisor: the count) of the groups of ascending values that begin at `starts`."""
    import numpy as np

    sizes = np.diff(starts, append=len(values))
    totals = np.add.reduceat(counts, starts)
    first = values[starts]
    offsets = np.add.reduceat(counts * (values - np.repeat(first, sizes)), starts) / totals
    means = first + offsets  # a group of one keeps its value to the bit
    variances = np.add.reduceat(counts * (values - np.repeat(means, sizes)) ** 2, starts) / totals
    return means, totals, variances


def _equal_widths(values: Floats) -> Integers:
    """Where groups of equal width begin in ascending values.

    Not of equal count: n values can lie no further apart than sqrt(2 n) standard deviations, so that these groups are
    narrow whatever the tails are, and an outlier has its own.
    """
    import numpy as np

    group = np.floor((values - values[0]) / (values[-1] - values[0]) * MAX_DISTINCT)
    return np.flatnonzero(np.diff(group, prepend=-1))


def _mean(values: Floats, counts: Integers) -> float:
    return float((counts * values).sum() / counts.sum())


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
        drawn = generator.multinomial(n, counts / n, size=part.stop - start)
        # no matrix product: its last bits depend on the processor and its threads
        means[part] = (drawn * values).sum(axis=1) / n
        if variances is not None:
            means[part] += generator.standard_normal(len(drawn)) * np.sqrt((drawn * variances).sum(axis=1)) / n
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
