"""What a set of so many questions could show at all."""

from __future__ import annotations

from math import isfinite, sqrt
from statistics import NormalDist
from typing import TYPE_CHECKING

from evaltrack.stats.pairs import distinct, mean_of

if TYPE_CHECKING:
    from evaltrack.stats.pairs import Scores


def difference_sd(baseline: Scores, candidate: Scores) -> float | None:
    """The standard deviation of the paired differences (divisor n - 1), in the unit of the score; None below two pairs.

    Raises:
        ValueError: The lengths differ, or a score is NaN or infinite.
    """
    values, counts, _ = distinct(baseline, candidate)
    n = int(counts.sum())
    if n < 2:
        return None
    return sqrt(float((counts * (values - mean_of(values, counts)) ** 2).sum()) / (n - 1))


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
    _check_power(power)
    if n < 0:
        raise ValueError(f"n is {n}; it counts questions and cannot be negative")
    if sd is not None and not (isfinite(sd) and sd >= 0):
        raise ValueError(f"sd is {sd}; a standard deviation is finite and not negative")
    if n < 2 or not sd:
        return None
    quantile = NormalDist().inv_cdf
    return (quantile((1 + confidence) / 2) + quantile(power)) * sd / sqrt(n)


def _check_power(power: float) -> None:
    if not 0.5 <= power < 1:
        raise ValueError(f"power is {power}; it must be at least 0.5 and below 1, as 0.8")


def _check_share(name: str, share: float) -> None:
    if not 0 < share < 1:
        raise ValueError(f"{name} is {share}; it must be above 0 and below 1, as 0.95")
