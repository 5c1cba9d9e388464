"""Computes the agreement of two evaluators: Cohen's kappa, bias, share within a tolerance.

`a` and `b` hold each evaluator's values for the responses, in one order. None is no verdict; such a pair is left out
and counted. An undefined figure is None with a reason, never NaN and never 0. Kappa is at most 1; 0 is the value that
chance gives.

Sources: J. Cohen, *A coefficient of agreement for nominal scales*, Educational and Psychological Measurement 20 (1960);
J. Cohen, *Weighted kappa*, Psychological Bulletin 70 (1968).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import isnan
from typing import TYPE_CHECKING, Any, TypeAlias

from evaltrack.stats.intervals import TAIL, drawn_counts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from evaltrack.stats.intervals import Floats, Integers

Sides: TypeAlias = Sequence[tuple["Floats", "Floats"]]

RESAMPLES = 2000
DECIMALS = 12
"""Decimals to which numbers are rounded before they are compared: 0.1 + 0.2 is 0.3."""

NO_PAIR = "no pair has a value on both sides"
ALL_ONE = "all values are one and the same"


@dataclass(frozen=True)
class Figure:
    """One measure of agreement over `n` pairs; `left_out` more pairs lack a value.

    `low` to `high` is the 95 % interval of kappa, by percentile bootstrap. `reason` says why there is no value or no
    interval.
    """

    value: float | None
    n: int
    left_out: int
    reason: str | None = None
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Agreement:
    """The figures of two evaluators by name, over `n` pairs. Left-out pairs lack `a` alone, `b` alone, or both."""

    n: int
    without_a: int
    without_b: int
    figures: Mapping[str, Figure]


def numeric_agreement(
    a: Sequence[float | None], b: Sequence[float | None], *, tolerance: float, resamples: int = RESAMPLES
) -> Agreement:
    """Return the agreement on numbers of one scale.

    `mean_absolute_difference`, `share_within` (``|b - a| <= tolerance``) and `bias` (``b - a``) are means.
    `quadratic_kappa` (Cohen 1968) uses the values as given; rounded values would give another kappa.
    """
    import numpy as np

    x, y = (np.array(side, dtype=np.float64).round(DECIMALS) for side in _paired(a, b))
    near = abs(y - x) <= tolerance + 10.0**-DECIMALS
    means = {"mean_absolute_difference": abs(y - x), "share_within": near, "bias": y - x}
    (u, v), counts = np.unique(np.stack([x, y]), axis=1, return_counts=True)  # few on a scale with steps
    return _agreement(a, b, means, "quadratic_kappa", _kappa_figure([(u, v)], counts, len(a), resamples))


def label_agreement(a: Sequence[Any], b: Sequence[Any], *, resamples: int = RESAMPLES) -> Agreement:
    """Return the agreement on labels: `accuracy` (share equal) and `cohen_kappa` (1960).

    To count an unreadable verdict as a disagreement instead of leaving it out, give it its own label.
    """
    import numpy as np

    first, second = _paired(a, b)
    labels = sorted({*first, *second}, key=lambda label: (str(type(label)), label))
    place = {label: at for at, label in enumerate(labels)}
    x, y = (np.array([place[label] for label in side], dtype=np.float64) for side in (first, second))
    (u, v), counts = np.unique(np.stack([x, y]), axis=1, return_counts=True)
    of_labels = [((u == label).astype(np.float64), (v == label).astype(np.float64)) for label in range(len(labels))]
    return _agreement(a, b, {"accuracy": x == y}, "cohen_kappa", _kappa_figure(of_labels, counts, len(a), resamples))


def _paired(a: Sequence[Any], b: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    pairs = [pair for pair in zip(a, b, strict=True) if None not in pair]
    return [one for one, _ in pairs], [other for _, other in pairs]


def _agreement(
    a: Sequence[Any], b: Sequence[Any], means: Mapping[str, NDArray[Any]], name: str, kappa: Figure
) -> Agreement:
    """Return the means with the kappa called `name`."""
    lacking = [(one is None, other is None) for one, other in zip(a, b, strict=True)]
    n, left_out = kappa.n, kappa.left_out
    figures = {
        mean: Figure(float(values.mean()), n, left_out) if n else Figure(None, n, left_out, NO_PAIR)
        for mean, values in means.items()
    }
    return Agreement(n, lacking.count((True, False)), lacking.count((False, True)), {**figures, name: kappa})


def _kappa_figure(sides: Sides, counts: Integers, given: int, resamples: int) -> Figure:
    """Return kappa with its interval.

    If more than 2.5 % of the resamples have no value there is no interval, because all of these may be beyond one end.
    """
    import numpy as np

    n = int(counts.sum())
    if not n:
        return Figure(None, 0, given, NO_PAIR)
    value = float(_kappa(sides, counts[None])[0])
    if isnan(value):
        return Figure(None, n, given - n, ALL_ONE)
    drawn = drawn_counts(counts, resamples, np.random.default_rng(0))
    sample = np.concatenate([_kappa(sides, part) for part in drawn])
    defined = sample[~np.isnan(sample)]
    if (without := 1 - len(defined) / len(sample)) > TAIL:
        return Figure(value, n, given - n, f"no interval: {without:.1%} of the resamples have no value")
    low, high = np.quantile(defined, [TAIL, 1 - TAIL])
    return Figure(value, n, given - n, low=float(low), high=float(high))


def _kappa(sides: Sides, counts: Integers) -> Floats:
    """Return kappa, or NaN, of m distinct pairs in r resamples: `counts` has the shape (r, m), the result (r,).

    `sides` holds the numbers of `a` and `b`, or for each label where it was given, whose squared differences add up to
    twice the unlike pairs. Sums of these are exact, which means are not.
    """
    import numpy as np

    n = counts.sum(axis=1)
    apart = np.sum([n * _sum(counts, (x - y) ** 2) for x, y in sides], axis=0)
    by_chance = [n * _sum(counts, x * x + y * y) - 2 * _sum(counts, x) * _sum(counts, y) for x, y in sides]
    squares = np.sum([n * _sum(counts, x * x + y * y) for x, y in sides], axis=0)
    share, expected = np.full(len(n), np.nan), np.sum(by_chance, axis=0)
    np.divide(apart, expected, out=share, where=expected > 1e-12 * squares)  # else it is rounding
    return 1 - share


def _sum(counts: Integers, values: Floats) -> Floats:
    total: Floats = (counts * values).sum(axis=1)
    return total
