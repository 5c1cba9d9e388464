"""Computes exact tests of paired scores and pass counts (sign-flip, Fisher), and Holm's correction of p-values.

Sources: Q. McNemar, Psychometrika 12 (1947), in its exact form; R. A. Fisher, *The Design of Experiments* (1935), for
the sign-flip test of paired differences and the exact test of two shares; S. Holm, Scandinavian Journal of Statistics 6
(1979).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import erfc, exp, log, sqrt
from typing import TYPE_CHECKING, Any, TypeVar

from evaltrack.stats.intervals import distinct, merge_values

if TYPE_CHECKING:
    from evaltrack.stats.intervals import Floats, Integers, Scores

K = TypeVar("K")

MIN_CHANGED = 6
"""The fewest changed pairs that can be significant: five changes in one direction have p = 2 / 2^5 = 0.0625."""

ENUMERATED_BITS = 20
"""Up to 2 to this power sums of signed differences are enumerated; of more, some are drawn."""

FIRST_DRAWS, DRAWS = 10_000, 50_000
"""Choices of signs drawn at first, and the number drawn if p is below 10 % then."""

MANY_CHANGED = 2000
"""Changed pairs from which the sum of signed differences is taken as normal, if none of them dominates."""


@dataclass(frozen=True)
class PairedTest:
    """The p-value of a test of paired values, and the number of pairs that changed."""

    p: float = 1.0
    changed: int = 0


def holm(p_values: Mapping[K, float], among: int | None = None) -> dict[K, float]:
    """Return p-values adjusted for multiple tests by Holm's step-down (1979). Compare each with one level, as 0.05.

    The smallest of m is multiplied by m, the next by m - 1, and so on. None falls below the one before it, and none
    exceeds 1.

    Args:
        p_values: The p-values by the name of the test.
        among: The number of all tests if the data chose which of them are tested, as with comparisons against the best
            of several. The p-values of the others count as 1, which keeps the level. None: `p_values` holds all.
    """
    tests, reached = len(p_values) if among is None else among, 0.0
    adjusted = dict.fromkeys(p_values, 0.0)
    for rank, name in enumerate(sorted(p_values, key=p_values.__getitem__)):
        adjusted[name] = reached = max(reached, min(1.0, (tests - rank) * p_values[name]))
    return adjusted


def sign_flip(baseline: Scores, candidate: Scores, *, seed: int = 0) -> PairedTest:
    """Return the exact two-sided sign-flip test of the mean difference of paired scores.

    If neither side is better, each difference is as likely to have the other sign. p is the share of all choices of
    signs whose sum is at least as far from 0 as the observed one (Fisher 1935; Pitman 1937). Pairs without a difference
    are ignored. For differences between two outcomes it is McNemar's exact test.

    `scipy.stats.permutation_test` counts all choices up to some 13 changed pairs. Scores take few values, so here the
    sums are counted by the number of differences of each size with the other sign. If there are too many, signs are
    drawn and the observed ones are counted among them, which keeps the level of the test (Phipson and Smyth 2010). A p
    below one in a million is given by its upper bound (Hoeffding 1963), and that of very many changes by the normal
    distribution.

    Args:
        baseline: n scores, finite.
        candidate: n scores, finite, of the same questions in the same order.
        seed: The seed of the drawn signs.
    """
    import numpy as np

    values, counts, rounding = distinct(baseline, candidate)
    differ = abs(values) > rounding
    values, counts = values[differ], counts[differ]
    changed = int(counts.sum())
    if not changed:
        return PairedTest()
    observed = max(0.0, abs(float((counts * values).sum())) - 2 * rounding * changed)
    order = np.argsort(abs(values), kind="stable")
    sizes, times = abs(values)[order], counts[order]
    sizes, times = merge_values(sizes, times, np.flatnonzero(np.diff(sizes, prepend=-np.inf) > rounding))
    squares = float((times * sizes**2).sum())
    if float(np.log2(times + 1).sum()) <= ENUMERATED_BITS:
        p = _enumerated(sizes, times, observed)
    elif (bound := 2 * exp(-(observed**2) / (2 * squares))) < 1e-6:
        p = bound
    elif changed >= MANY_CHANGED and float(sizes[-1]) ** 2 < squares / 100:
        p = erfc(observed / sqrt(2 * squares))
    else:
        p = _sampled(sizes, times, observed, seed)
    return PairedTest(p, changed)


def _enumerated(sizes: Floats, times: Integers, observed: float) -> float:
    """Return the share of all choices of signs whose sum is at least as far from 0 as the observed one."""
    import numpy as np
    from scipy.special import gammaln

    sums, shares = np.zeros(1), np.ones(1)
    for size, count in zip(sizes.tolist(), times.tolist(), strict=True):
        positive = np.arange(count + 1)
        sums = np.add.outer(sums, size * (2 * positive - count)).ravel()
        ways = gammaln(count + 1) - gammaln(positive + 1) - gammaln(count - positive + 1)
        shares = np.multiply.outer(shares, np.exp(ways - count * log(2))).ravel()
    return min(1.0, float(shares[abs(sums) >= observed].sum()))


def _sampled(sizes: Floats, times: Integers, observed: float, seed: int) -> float:
    """Return the share of drawn sums at least as far from 0 as the observed one, which is counted among them."""
    import numpy as np

    generator, drawn, beyond, step = np.random.default_rng(seed), 0, 0, max(1, (1 << 18) // len(sizes))
    for draws in (FIRST_DRAWS, DRAWS):
        while drawn < draws:
            positive = generator.binomial(times, 0.5, size=(min(step, draws - drawn), len(sizes)))
            beyond += int((abs(((2 * positive - times) * sizes).sum(axis=1)) >= observed).sum())
            drawn += len(positive)
        if beyond >= FIRST_DRAWS / 10:
            break
    return (beyond + 1) / (drawn + 1)


def p_of_lost_passes(passes: Integers, trials: Integers) -> float:
    """Return the exact one-sided p that the baseline passed so many more trials by chance.

    If neither side is better, the trials of a question may be swapped between the sides. Given the number of passed
    trials, the number on the baseline's side is hypergeometric (Fisher 1935). The statistic is the sum over all
    questions. For single trials it is McNemar's exact test.

    Args:
        passes: Shape (2, n): the passed trials of each question, in the baseline and in the candidate.
        trials: The same shape: the trials of each question.
    """
    import numpy as np
    from scipy.stats import hypergeom

    passed, total = passes.sum(axis=0), trials.sum(axis=0)
    varies = (passed > 0) & (passed < total)
    kinds, counts = np.unique(np.stack([total, passed, trials[0]])[:, varies], axis=1, return_counts=True)
    size = int((kinds[2] * counts).sum()) + 1
    spectrum: Any = 1.0  # the spectrum of a sum's distribution is the product of its terms' spectra
    for (number, good, drawn), count in zip(kinds.T, counts, strict=True):
        chances = hypergeom.pmf(np.arange(drawn + 1), number, good, drawn)
        spectrum = spectrum * np.fft.rfft(chances, size) ** count
    if size == 1:
        return 1.0
    tail = np.fft.irfft(spectrum, size)[int(passes[0, varies].sum()) :].sum()
    return float(min(1.0, max(0.0, tail)))


def luck(consistent: int, lucky: int, draws: int) -> float:
    """Return the probability of at least `consistent` lucky passes in one draw, given `lucky` of them in `draws` draws.

    The number in a draw is taken as Poisson, its rate with the Jeffreys prior: the draw is negative binomial.
    """
    from scipy.special import betainc

    return float(betainc(consistent, lucky + 0.5, 1 / (draws + 1)))


def flaky_by_chance(broke: int, passes: Integers, trials: Integers) -> float:
    """Return the probability that so many questions or more fail once that pass most trials (Poisson).

    Args:
        broke: The number of questions that failed.
        passes: Passes of each question on both sides, the earlier side first.
        trials: Trials of each question on both sides. Only questions with one trial on the later side may fail once.
    """
    from scipy.stats import poisson

    reliable = (2 * passes[0] > trials[0]) & (trials[1] == 1)
    failing = (1 - passes[0] / trials[0])[reliable].sum()
    return float(poisson.sf(broke - 1, failing))


def worse_than_record(failed: int, times: int, record_failed: int, record_times: int) -> float:
    """Return Fisher's exact one-sided p that a question fails more often now than in its record.

    1 if there is no record.

    Args:
        failed: The number of failed trials and reruns.
        times: The number of trials and reruns.
        record_failed: The number of failures in the record.
        record_times: The number of trials in the record.
    """
    from scipy.stats import hypergeom

    return float(hypergeom.sf(failed - 1, times + record_times, failed + record_failed, times))
