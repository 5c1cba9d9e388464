"""Computes the agreement of two evaluators: Cohen's kappa, bias, share within a tolerance, confusion.

`a` and `b` hold each evaluator's values for the responses, in one order. None is no verdict; such a pair is left out
and counted. An undefined figure is None with a reason, never NaN and never 0. Kappa is at most 1; 0 is the value that
chance gives.

Sources: J. Cohen, *A coefficient of agreement for nominal scales*, Educational and Psychological Measurement 20 (1960);
J. Cohen, *Weighted kappa*, Psychological Bulletin 70 (1968).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import isnan
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from evaltrack.stats.intervals import TAIL, bca, distinct, drawn_counts

if TYPE_CHECKING:
    from evaltrack.stats.intervals import Floats, Integers

How: TypeAlias = Literal["bca", "bca-grouped", "percentile", "all-equal", "one-pair"]
Sides: TypeAlias = Sequence[tuple["Floats", "Floats"]]

RESAMPLES = 2000
DECIMALS = 12
"""Decimals to which numbers are rounded before they are compared: 0.1 + 0.2 is 0.3."""

NO_PAIR = "no pair has a value on both sides"
ALL_ONE = "all values are one and the same"


@dataclass(frozen=True)
class Figure:
    """One measure of agreement over `n` pairs; `left_out` more pairs lack a value.

    `low` to `high` is the 95 % bootstrap interval. `method` is ``bca`` or ``bca-grouped`` (see
    `evaltrack.stats.intervals.bca`), ``percentile``, or ``all-equal`` or ``one-pair``. The last two are single points,
    which are no evidence. `reason` says why there is no value or no interval.
    """

    value: float | None
    n: int
    left_out: int
    reason: str | None = None
    low: float | None = None
    high: float | None = None
    method: How | None = None


@dataclass(frozen=True)
class Confusion:
    """The number of pairs with the row's label from `a` and the column's label from `b`, in the order of `labels`."""

    labels: tuple[str | bool | int, ...]
    counts: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Agreement:
    """The figures of two evaluators by name, over `n` pairs. Left-out pairs lack `a` alone, `b` alone, or both."""

    n: int
    without_a: int
    without_b: int
    figures: Mapping[str, Figure]
    confusion: Confusion | None = None


def numeric_agreement(
    a: Sequence[float | None], b: Sequence[float | None], *, tolerance: float, resamples: int = RESAMPLES, seed: int = 0
) -> Agreement:
    """Return the agreement on numbers of one scale.

    `mean_absolute_difference`, `share_within` (``|b - a| <= tolerance``) and `bias` (``b - a``) are means, with BCa
    intervals. `quadratic_kappa` (Cohen 1968) has a percentile interval. If more than 2.5 % of the resamples have no
    value there is no interval, because all of these may be beyond one end. Kappa uses the values as given; rounded
    values would give another kappa.
    """
    import numpy as np

    x, y = (np.array(side, dtype=np.float64).round(DECIMALS) for side in _paired(a, b))
    near = (abs(y - x) <= tolerance + 10.0**-DECIMALS).astype(np.float64)
    means = {"mean_absolute_difference": abs(y - x), "share_within": near, "bias": y - x}
    (u, v), counts = np.unique(np.stack([x, y]), axis=1, return_counts=True)  # few on a scale with steps
    figures = _figures(means, "quadratic_kappa", [_scaled(u, v)], counts, len(a), resamples, seed)
    return Agreement(len(x), *_missing(a, b), figures)


def label_agreement(a: Sequence[Any], b: Sequence[Any], *, resamples: int = RESAMPLES, seed: int = 0) -> Agreement:
    """Return the agreement on labels: `accuracy` (share equal), `cohen_kappa` (1960) and confusion.

    The intervals are as in `numeric_agreement`. To count an unreadable verdict as a disagreement instead of leaving it
    out, give it its own label.
    """
    import numpy as np

    first, second = _paired(a, b)
    labels = sorted({*first, *second}, key=lambda label: (str(type(label)), label))
    place = {label: at for at, label in enumerate(labels)}
    x, y = (np.array([place[label] for label in side], dtype=np.float64) for side in (first, second))
    (u, v), counts = np.unique(np.stack([x, y]), axis=1, return_counts=True)
    of_labels = [((u == label).astype(np.float64), (v == label).astype(np.float64)) for label in range(len(labels))]
    table = np.zeros((len(labels), len(labels)), dtype=np.int64)
    table[u.astype(int), v.astype(int)] = counts
    confusion = Confusion(tuple(labels), tuple(map(tuple, table.tolist())))
    means = {"accuracy": (x == y).astype(np.float64)}
    figures = _figures(means, "cohen_kappa", of_labels, counts, len(a), resamples, seed)
    return Agreement(len(x), *_missing(a, b), figures, confusion)


def _paired(a: Sequence[Any], b: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    pairs = [pair for pair in zip(a, b, strict=True) if None not in pair]
    return [one for one, _ in pairs], [other for _, other in pairs]


def _missing(a: Sequence[Any], b: Sequence[Any]) -> tuple[int, int]:
    """Return the numbers of pairs that lack `a` alone and `b` alone."""
    lacking = [(one is None, other is None) for one, other in zip(a, b, strict=True)]
    return lacking.count((True, False)), lacking.count((False, True))


def _figures(
    means: Mapping[str, Floats],
    kappa: str,
    sides: Sides,
    counts: Integers,
    given: int,
    resamples: int,
    seed: int,
) -> dict[str, Figure]:
    """Return all figures: the means, and the kappa of the sides under its name."""
    import numpy as np

    n = int(counts.sum())
    if not n:
        return dict.fromkeys((*means, kappa), Figure(None, 0, given, NO_PAIR))
    figures = {name: _mean_figure(values, given - n, resamples, seed) for name, values in means.items()}
    value = float(_kappa(sides, counts[None])[0])
    if isnan(value):
        return {**figures, kappa: Figure(None, n, given - n, ALL_ONE)}
    drawn = drawn_counts(counts, resamples, np.random.default_rng(seed))
    sample = np.concatenate([_kappa(sides, part) for part in drawn])
    return {**figures, kappa: _with_percentiles(Figure(value, n, given - n), sample)}


def _mean_figure(values: Floats, left_out: int, resamples: int, seed: int) -> Figure:
    import numpy as np

    figure = Figure(float(values.mean()), len(values), left_out)
    differences, counts, rounding = distinct(np.zeros(len(values)), values)
    if len(differences) == 1:
        return _with_percentiles(figure, differences)
    low, high, method = bca(differences, counts, rounding, resamples, seed)
    return replace(figure, low=low, high=high, method=method)


def _with_percentiles(figure: Figure, sample: Floats) -> Figure:
    """Return the figure with the percentiles of its resamples, or with the reason for none."""
    import numpy as np

    defined = sample[~np.isnan(sample)]
    if (without := 1 - len(defined) / len(sample)) > TAIL:
        return replace(figure, reason=f"no interval: {without:.1%} of the resamples have no value")
    low, high = (float(end) for end in np.quantile(defined, [TAIL, 1 - TAIL]))
    method: How = "one-pair" if figure.n == 1 else "percentile" if np.ptp(defined) else "all-equal"
    return replace(figure, low=low, high=high, method=method)


def _kappa(sides: Sides, counts: Integers) -> Floats:
    """Return kappa, or NaN, of m distinct pairs in r resamples: `counts` has the shape (r, m), the result (r,).

    `sides` holds the numbers of `a` and `b`, or for each label where it was given, whose squared differences add up to
    twice the unlike pairs. Sums of these are exact, which means are not.
    """
    import numpy as np

    n = counts.sum(axis=1)
    apart = np.sum([n * _sum(counts, (x - y) ** 2) for x, y in sides], axis=0)
    by_chance = [n * _sum(counts, x * x + y * y) - 2 * _sum(counts, x) * _sum(counts, y) for x, y in sides]
    share, expected = np.full(len(n), np.nan), np.sum(by_chance, axis=0)
    np.divide(apart, expected, out=share, where=expected > 1e-12 * n * n)
    return 1 - share


def _scaled(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    """Return both sides scaled to [-1, 1], which reduces rounding errors and changes no coefficient."""
    import numpy as np

    values = np.concatenate([x, y])
    if not len(values):
        return x, y
    middle, half = (values.max() + values.min()) / 2, np.ptp(values) / 2 or 1.0
    return (x - middle) / half, (y - middle) / half


def _sum(counts: Integers, values: Floats) -> Floats:
    total: Floats = (counts * values).sum(axis=1)
    return total
