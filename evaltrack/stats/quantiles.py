"""Quantiles of paired values: how far their difference can be trusted, and can it be chance?

Quantiles are by nearest rank (Hyndman and Fan 1996, definition 1), so that each is a value that was measured.
`scipy.stats.permutation_test` needs a minute for the swaps of 100,000 pairs that take 3 s here.
"""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from evaltrack.stats.pairs import Floats

BEYOND = 5
"""Values that must lie on either side of a quantile before it has an interval: 100 values for the 95th percentile."""

WORK = 100_000_000
"""Values that are drawn for one interval or test; of more pairs fewer samples are drawn, at least `FEWEST`."""

FEWEST = 400


def quantile(values: Floats, share: float) -> float:
    """The least of the values that at least a `share` of them do not exceed; `share` is in (0, 1]."""
    import numpy as np

    place = ceil(share * len(values) - 1e-9) - 1
    return float(np.partition(values, place)[place])


def quantile_interval(
    baseline: Floats, candidate: Floats, share: float, *, resamples: int = 10_000, seed: int = 0
) -> tuple[float, float] | None:
    """The 95 % interval of candidate - baseline: the percentile bootstrap over pairs (Efron 1979).

    None where fewer than `BEYOND` values lie on either side of the quantile.
    """
    import numpy as np

    n, generator = len(baseline), np.random.default_rng(seed)
    if n * min(share, 1 - share) < BEYOND - 1e-9:
        return None
    samples = (generator.integers(0, n, n) for _ in range(_samples(n, resamples)))
    differences = [quantile(candidate[chosen], share) - quantile(baseline[chosen], share) for chosen in samples]
    low, high = np.quantile(differences, [0.025, 0.975])
    return float(low), float(high)


def swap_test(baseline: Floats, candidate: Floats, share: float, *, resamples: int = 10_000, seed: int = 0) -> float:
    """The two-sided p of a paired randomization test: can the difference of the quantiles be chance?

    If neither side differs, the two values of a question are as likely to be the other way round. p is the share of
    such swaps whose difference is at least as far from 0, the one seen counted among them (Phipson and Smyth 2010).
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
