"""Whether a difference can be chance: exact tests of paired outcomes and scores, corrected for being several.

Sources: Q. McNemar, Psychometrika 12 (1947), in its exact form; R. A. Fisher, *The Design of Experiments* (1935), for
the sign-flip test of paired differences and the exact test of two shares; S. Holm, Scandinavian Journal of Statistics 6
(1979).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import comb, erfc, exp, lgamma, log, sqrt
from typing import TYPE_CHECKING, Literal, TypeAlias

from evaltrack.stats.pairs import distinct, merge_values

if TYPE_CHECKING:
    import numpy as np

    from evaltrack.stats.pairs import Floats, Integers, Scores

LEVEL = 0.05
"""p-values below it show a difference."""

MIN_CHANGED = 6
"""Fewer changed pairs show nothing: even if all changed in one direction, p is 2 / 2^5 = 0.0625."""

ENUMERATED_BITS = 20
"""Sums of signed differences are enumerated up to two to this; of more, some are drawn."""

FIRST_DRAWS, DRAWS = 10_000, 50_000
"""Signs drawn at first, and where that leaves p below some `SETTLED` / `FIRST_DRAWS`."""

SETTLED = 1000

MANY_CHANGED = 2000
"""From so many changed pairs, none of which dominates, the sum of signed differences is as good as normal."""

How: TypeAlias = Literal["exact", "sampled", "normal", "bound"]


@dataclass(frozen=True)
class SignFlip:
    """The p-value of a sign-flip test, over how many pairs that `changed`, and how it was had.

    ``exact``: all sums counted; ``sampled``: signs drawn; ``normal``: of very many changes, by the normal distribution;
    ``bound``: p is at most this (Hoeffding 1963).
    """

    p: float
    changed: int
    how: How


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


def holm(p_values: Mapping[str, float], among: int | None = None) -> dict[str, float]:
    """p-values adjusted for being several, by Holm's step-down: compare each with the one level, as 0.05.

    The smallest of m is multiplied by m, the next by m - 1, and so on; none falls below the one before it, none exceeds
    1. The chance that any true null hypothesis among the m is rejected then stays within the level, whatever the
    dependence between them. Names and their order stay.

    Args:
        p_values: By the name of the test.
        among: Of how many tests these are, where the data chose which of them are looked at, as those against the best
            of several; the p-values of the others count as 1, which keeps the level. None: these are all.

    Raises:
        ValueError: A p-value is NaN or not in [0, 1], or there are more of them than `among`.
    """
    tests = len(p_values) if among is None else among
    if tests < len(p_values):
        raise ValueError(f"{len(p_values)} p-values are not among {tests} tests")
    for name, p in p_values.items():
        if not 0 <= p <= 1:
            raise ValueError(f"the p-value of `{name}` is {p}; it must be in [0, 1]")
    adjusted = dict.fromkeys(p_values, 0.0)
    reached = 0.0
    for rank, name in enumerate(sorted(p_values, key=p_values.__getitem__)):
        reached = max(reached, min(1.0, (tests - rank) * float(p_values[name])))
        adjusted[name] = reached
    return adjusted


def sign_flip(baseline: Scores, candidate: Scores, *, seed: int = 0) -> SignFlip:
    """The exact two-sided sign-flip test of paired scores: can the mean difference be chance?

    If neither side is better, each difference is as likely to have the other sign. p is the share of all choices of
    signs whose sum is at least as far from 0 as the one seen (Fisher 1935; Pitman 1937). Pairs without a difference say
    nothing. Of flips between two outcomes it is McNemar's exact test. Where the choices are too many to count, 50,000
    are drawn and the one seen is counted among them, which keeps the level of the test.

    Args:
        baseline: n scores, finite.
        candidate: n scores, finite, of the same questions in the same order.
        seed: of the signs that are drawn.

    Raises:
        ValueError: The lengths differ, or a score is NaN or infinite.
    """
    import numpy as np

    values, counts, rounding = distinct(baseline, candidate)
    differ = abs(values) > rounding
    values, counts = values[differ], counts[differ]
    num_changed = int(counts.sum())
    if not num_changed:
        return SignFlip(1.0, 0, "exact")
    observed = abs(float((counts * values).sum())) - 2 * rounding * num_changed
    sizes, times = _sizes(values, counts, rounding)
    if float(np.log2(times + 1).sum()) <= ENUMERATED_BITS:
        return SignFlip(_enumerated(sizes, times, observed), num_changed, "exact")
    squares = float((times * sizes**2).sum())
    if (upper_bound := 2 * exp(-(max(observed, 0.0) ** 2) / (2 * squares))) < 1e-6:
        return SignFlip(upper_bound, num_changed, "bound")
    if num_changed >= MANY_CHANGED and float(sizes[-1]) ** 2 < squares / 100:
        return SignFlip(erfc(max(observed, 0.0) / sqrt(2 * squares)), num_changed, "normal")
    return SignFlip(_sampled(sizes, times, observed, seed), num_changed, "sampled")


def _sizes(values: Floats, counts: Integers, rounding: float) -> tuple[Floats, Integers]:
    """The distinct sizes of the differences, ascending, whatever their sign."""
    import numpy as np

    order = np.argsort(abs(values), kind="stable")
    sizes, times = abs(values)[order], counts[order]
    sizes, times, _ = merge_values(sizes, times, np.flatnonzero(np.diff(sizes, prepend=-np.inf) > rounding))
    return sizes, times


def _enumerated(sizes: Floats, times: Integers, observed: float) -> float:
    """The share of all signs whose sum is as far from 0 as `seen`."""
    import numpy as np

    sums, shares = np.zeros(1), np.ones(1)
    for size, count in zip(sizes.tolist(), times.tolist(), strict=True):
        positive = np.arange(count + 1)
        ways = [lgamma(count + 1) - lgamma(k + 1) - lgamma(count - k + 1) - count * log(2) for k in range(count + 1)]
        sums = (sums[:, None] + size * (2 * positive - count)).ravel()
        shares = (shares[:, None] * np.exp(ways)).ravel()
    return min(1.0, float(shares[abs(sums) >= observed].sum()))


def _sampled(sizes: Floats, times: Integers, observed: float, seed: int) -> float:
    """The share of signs drawn whose sum is as far from 0 as `seen`; `seen` itself is one of them."""
    import numpy as np

    generator = np.random.default_rng(seed)
    beyond = _draw(generator, sizes, times, observed, FIRST_DRAWS)
    if beyond >= SETTLED:
        return (beyond + 1) / (FIRST_DRAWS + 1)
    beyond += _draw(generator, sizes, times, observed, DRAWS - FIRST_DRAWS)
    return (beyond + 1) / (DRAWS + 1)


def _draw(generator: np.random.Generator, sizes: Floats, times: Integers, observed: float, draws: int) -> int:
    """How many of the signs drawn give a sum as far from 0 as `seen`."""
    beyond, step = 0, max(1, (1 << 18) // len(sizes))
    for start in range(0, draws, step):
        positive = generator.binomial(times, 0.5, size=(min(step, draws - start), len(sizes)))
        beyond += int((abs(((2 * positive - times) * sizes).sum(axis=1)) >= observed).sum())
    return beyond


def worse_than_record(failed: int, times: int, record_failed: int, record_times: int) -> float:
    """Fisher's exact one-sided p: does a question fail more often now than its record says, or can that be chance?

    The probability that, of all its failures, at least `failed` fall among the `times` of now, if each is as likely to
    fall anywhere; 1 where there is no record.

    Args:
        failed: how often it failed when it was asked again.
        times: how often it was asked again.
        record_failed: how often it failed before.
        record_times: how often it was asked before.

    Raises:
        ValueError: A count is negative, or larger than what it is a part of.
    """
    if not (0 <= failed <= times and 0 <= record_failed <= record_times):
        raise ValueError(f"{failed} of {times} and {record_failed} of {record_times}; these are counts, and parts")
    failures, attempts = failed + record_failed, times + record_times
    ways = sum(
        comb(failures, at) * comb(attempts - failures, times - at)
        for at in range(failed, min(failures, times) + 1)
        if times - at <= attempts - failures
    )
    return ways / comb(attempts, times)


def shown_by(p_values: Mapping[str, float], level: float = LEVEL) -> set[str]:
    """The names whose p-value stays below the level after Holm's correction for being several."""
    return {name for name, p in holm(p_values).items() if p < level}
