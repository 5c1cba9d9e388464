"""Values as arrays, and coefficients of agreement over many resamples of them at once: pure functions.

Conventions of the coefficients:

- `x` and `y` are the two values of each of m distinct pairs, all finite.
- `drawn` has the shape (r, m): how often each pair is in each of r resamples, none of which is empty; the data as they
  are, are one such row. What is given back has the shape (r,), NaN where a coefficient is undefined.
- Sums of counts are whole numbers, and exact. No matrix product is taken: its last bits depend on the processor.

The definitions are explained and cited in `evaltrack.stats.agreement`, which is what to call.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from math import isfinite
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeAlias

from evaltrack.stats.bootstrap import CELLS
from evaltrack.stats.pairs import ROUNDING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Integers: TypeAlias = NDArray[np.int64]
    Flags: TypeAlias = NDArray[np.bool_]
    Coefficient: TypeAlias = Callable[[Floats], Floats]


def numbers(*sides: Sequence[Any]) -> list[Floats]:
    """The sides as arrays, in which numbers that differ only by rounding are equal."""
    import numpy as np

    ratings = [value for side in sides for value in side]
    if strange := [value for value in ratings if not (isinstance(value, Real) and isfinite(value))]:
        raise ValueError(f"{strange[0]!r} is no finite number; give numbers, and None where there is no verdict")
    values, places = np.unique(np.array(ratings, dtype=np.float64), return_inverse=True)
    starts = np.diff(values, prepend=-np.inf) > ROUNDING * np.abs(values).max(initial=0)
    rounded: Floats = values[starts][np.cumsum(starts)[places] - 1]
    return np.split(rounded, np.cumsum([len(side) for side in sides])[:-1])


def labels_of(labels: Sequence[Hashable] | None, *sides: Sequence[Any]) -> tuple[Hashable, ...]:
    """The labels given, or else those on any side, sorted, by their text where they have no order."""
    used_labels = dict.fromkeys(label for side in sides for label in side)
    if any(label != label for label in used_labels):  # noqa: PLR0124  # only NaN is not itself
        raise ValueError("a label is NaN; give None where there is no verdict")
    if labels is None:
        try:
            return tuple(sorted(used_labels))
        except TypeError:
            return tuple(sorted(used_labels, key=str))
    if len(set(labels)) != len(labels):
        raise ValueError(f"the labels {list(labels)} repeat one; give each once")
    if strange := [label for label in used_labels if label not in labels]:
        raise ValueError(f"{strange[0]!r} is not among the labels {list(labels)}; add it, or correct the verdict")
    return tuple(labels)


def places(labels: Sequence[Any], *sides: Sequence[Any]) -> list[Floats]:
    """The sides as arrays of the places of their labels."""
    import numpy as np

    place = {label: at for at, label in enumerate(labels)}
    return [np.array([place[label] for label in side], dtype=np.float64) for side in sides]


def cells(x: Floats, y: Floats) -> tuple[Floats, Floats, Integers]:
    """Both sides of the distinct pairs, sorted, and how often each occurs: few where a scale has steps."""
    import numpy as np

    (u, v), counts = np.unique(np.stack([x, y]), axis=1, return_counts=True)
    return u, v, counts.astype(np.int64)


def within(tolerance: float, x: Floats, y: Floats) -> Floats:
    """1 where a pair is no further apart than `tolerance`, beyond rounding; else 0."""
    import numpy as np

    if not tolerance >= 0:
        raise ValueError(f"tolerance is {tolerance}; it is a largest difference and cannot be negative")
    largest = max(float(np.abs(side).max(initial=0)) for side in (x, y))
    return (abs(y - x) <= tolerance + ROUNDING * largest).astype(np.float64)


def as_units(x: Floats, y: Floats) -> tuple[Floats, Integers]:
    """Pairs as units of two values: the values, and which unit each is in."""
    import numpy as np

    return np.stack([x, y], axis=1).ravel(), np.repeat(np.arange(len(x)), 2)


def nominal_kappa(x: Floats, y: Floats, weights: Floats) -> Floats:
    """Cohen's kappa, where every two values that differ disagree alike."""
    import numpy as np

    levels = np.union1d(x, y)
    n = weights.sum(axis=1)
    expected = n * n - (_marginals(x, levels, weights) * _marginals(y, levels, weights)).sum(axis=1)
    return _one_minus(n * _dot(weights, x != y), expected, expected == 0)


def linear_kappa(x: Floats, y: Floats, weights: Floats) -> Floats:
    """Cohen's kappa, where two values disagree by their distance."""
    import numpy as np

    levels = np.union1d(x, y)
    n = weights.sum(axis=1)
    # two values lie on different sides of a gap between levels as often as one is below it and the other not
    below, under = (_marginals(side, levels, weights).cumsum(axis=1)[:, :-1] for side in (x, y))
    apart = below * (n[:, None] - under) + under * (n[:, None] - below)
    expected = _dot(apart, np.diff(levels))
    return _one_minus(n * _dot(weights, abs(x - y)), expected, expected == 0)


def quadratic_kappa(x: Floats, y: Floats, weights: Floats) -> Floats:
    """Cohen's kappa, where two values disagree by their squared distance."""
    import numpy as np

    u, v = np.split(_scaled(np.concatenate([x, y])), 2)
    n = weights.sum(axis=1)
    expected = n * _dot(weights, u * u + v * v) - 2 * _dot(weights, u) * _dot(weights, v)
    undefined = _all_one(np.minimum(x, y), np.maximum(x, y), weights)
    return _one_minus(n * _dot(weights, (u - v) ** 2), expected, undefined)


KAPPAS = {None: nominal_kappa, "linear": linear_kappa, "quadratic": quadratic_kappa}
"""By how a disagreement is weighed."""


def alpha(values: Floats, unit_of: Integers, nominal: bool, weights: Floats) -> Floats:
    """Krippendorff's alpha of units of two values or more, nominal or by squared distance; `drawn` counts units.

    `unit_of` says which unit each value is in, from 0, ascending.
    """
    import numpy as np

    sizes = np.bincount(unit_of)
    n = _dot(weights, sizes)
    # inside: over the ordered pairs of a unit's values; expected: over those of all values
    if nominal:
        levels, places = np.unique(values, return_inverse=True)
        alike = np.unique(unit_of * len(levels) + places, return_counts=True)
        inside = sizes**2 - np.bincount(alike[0] // len(levels), alike[1] ** 2)
        expected = n * n - (_marginals(values, levels, weights[:, unit_of]) ** 2).sum(axis=1)
        undefined = expected == 0
    else:
        centred = _scaled(values)
        means = np.bincount(unit_of, centred) / sizes
        inside = 2 * sizes * np.bincount(unit_of, (centred - means[unit_of]) ** 2)
        sums, squares = np.bincount(unit_of, centred), np.bincount(unit_of, centred**2)
        expected = 2 * (n * _dot(weights, squares) - _dot(weights, sums) ** 2)
        starts = np.searchsorted(unit_of, np.arange(len(sizes)))
        undefined = _all_one(np.minimum.reduceat(values, starts), np.maximum.reduceat(values, starts), weights)
    return _one_minus((n - 1) * _dot(weights, inside / (sizes - 1)), expected, undefined)


def rho(x: Floats, y: Floats, weights: Floats) -> Floats:
    """Spearman's rank correlation, ties with their average rank."""
    import numpy as np

    middle = (weights.sum(axis=1) + 1) / 2

    def ranks(side: Floats) -> Floats:
        levels, places = np.unique(side, return_inverse=True)
        deviations: Floats = mid_ranks(_marginals(side, levels, weights))[:, places] - middle[:, None]
        return deviations

    of_x, of_y = ranks(x), ranks(y)
    spread = (weights * of_x**2).sum(axis=1) * (weights * of_y**2).sum(axis=1)
    coefficients = np.full(len(weights), np.nan)
    np.divide((weights * of_x * of_y).sum(axis=1), np.sqrt(spread), out=coefficients, where=spread > 0)
    return coefficients


def mid_ranks(counts: Floats) -> Floats:
    """The average rank, from 1, of the values at each level, from how many each level has, along the last axis."""
    return counts.cumsum(axis=-1) - (counts - 1) / 2


def resampled(
    coefficients: Mapping[str, Coefficient], counts: Integers, resamples: int, seed: int
) -> dict[str, Floats]:
    """What each coefficient is in each resample of as many pairs, drawn again; the same resamples for all.

    `counts` is how often each distinct pair is there. Memory does not grow with the resamples.
    """
    import numpy as np

    if not coefficients:
        return {}
    generator = np.random.default_rng(seed)
    samples = {name: np.empty(resamples) for name in coefficients}
    step = max(1, CELLS // len(counts))
    for start in range(0, resamples, step):
        part = slice(start, min(start + step, resamples))
        n = int(counts.sum())
        weights = generator.multinomial(n, counts / n, size=part.stop - start).astype(np.float64)
        for name, coefficient in coefficients.items():
            samples[name][part] = coefficient(weights)
    return samples


def _scaled(values: Floats) -> Floats:
    """The values from -1 to 1, so that squares neither overflow nor vanish, around 0, so that few digits are lost."""
    import numpy as np

    centred = values - values.mean()
    scaled: Floats = centred / (np.abs(centred).max() or 1.0)
    return scaled


def _dot(weights: Floats, values: Floats | Integers | Flags) -> Floats:
    total: Floats = (weights * values).sum(axis=1)
    return total


def _marginals(values: Floats, levels: Floats, weights: Floats) -> Floats:
    """How often each level was drawn, shape (r, levels)."""
    import numpy as np

    order = np.argsort(values)
    running = np.zeros((len(weights), len(values) + 1))
    np.cumsum(weights[:, order], axis=1, out=running[:, 1:])
    edges = np.append(np.searchsorted(values[order], levels), len(values))
    return np.diff(running[:, edges], axis=1)


def _all_one(lowest: Floats, highest: Floats, weights: Floats) -> Flags:
    """Where all that was drawn is one value; exact, where a variance would be rounded."""
    import numpy as np

    least = np.where(weights > 0, lowest, np.inf).min(axis=1)
    same: Flags = least == np.where(weights > 0, highest, -np.inf).max(axis=1)
    return same


def _one_minus(observed: Floats, expected: Floats, undefined: Flags) -> Floats:
    """1 - observed / expected disagreement."""
    import numpy as np

    share = np.full(len(observed), np.nan)
    np.divide(observed, expected, out=share, where=~undefined)
    return 1 - share
