"""How well two evaluators of the same responses agree: pure functions over their values, pair by pair.

Conventions, the same for every function here:

- `a` and `b` are equally long: what each evaluator gave the responses, in one order. None is no verdict; a pair with a
  None is left out, and counted. The order of the pairs changes the last bit at most.
- What is undefined is None with a reason, never NaN and never 0; without any pair everything is.
- Kappa, alpha and rho are at most 1; 0 is what chance gives, and below 0 is worse than that.
- Numbers that differ only by rounding (`stats.pairs.ROUNDING`) are one.
- ``ValueError``: the lengths differ, a value is NaN or infinite, a number is needed and something else is there, a
  label is not among those given, or an option is out of its range.

Sources: J. Cohen, *A coefficient of agreement for nominal scales*, Educational and Psychological Measurement 20 (1960);
J. Cohen, *Weighted kappa*, Psychological Bulletin 70 (1968); K. Krippendorff, *Computing Krippendorff's
Alpha-Reliability* (2011); C. Spearman, *The proof and measurement of association between two things*, American Journal
of Psychology 15 (1904).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isnan
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from evaltrack.stats import coefficients
from evaltrack.stats.agreement_figure import NO_PAIR, Figure, mean_figure, with_bca, with_percentiles

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.float64]
    Integers: TypeAlias = NDArray[np.int64]

Weights: TypeAlias = Literal["linear", "quadratic"] | None
Level: TypeAlias = Literal["nominal", "ordinal", "interval"]
Numbers: TypeAlias = Sequence[float | None]
Labels: TypeAlias = Sequence[Hashable] | None
Drawn: TypeAlias = tuple[Callable[["Floats"], "Floats"], str]  # a coefficient, and why it is undefined where it is

RESAMPLES = 2000

NO_UNIT = "no unit has two values"
ALL_ONE = "all values are one and the same"
ONE_SIDE = "one side gave the same value throughout"


@dataclass(frozen=True)
class Confusion:
    """How often `a` gave the label of the row while `b` gave that of the column; both in the order of `labels`."""

    labels: tuple[Hashable, ...]
    counts: tuple[tuple[int, ...], ...]
    left_out: int


@dataclass(frozen=True)
class Agreement:
    """Figures of two evaluators by name, over `n` pairs; those left out lack `a` alone, `b` alone, or both."""

    n: int
    without_a: int
    without_b: int
    without_both: int
    figures: Mapping[str, Figure]
    confusion: Confusion | None = None


def cohen_kappa(a: Sequence[Any], b: Sequence[Any], *, weights: Weights = None, categories: Labels = None) -> Figure:
    """Cohen's kappa: 1 - observed disagreement / that of independent raters who use the labels as often (Cohen 1960).

    Weighted (Cohen 1968), a disagreement counts by its distance (``linear``) or squared distance (``quadratic``): of
    the places in `categories`, which are all labels from the lowest to the highest. Without `categories` the values
    must be numbers, and distance is their difference: an unused grade still lies between its neighbours.

    Undefined where both gave one and the same label throughout.
    """
    if weights not in coefficients.KAPPAS:
        raise ValueError(f"weights is {weights!r}; it must be None, 'linear' or 'quadratic'")
    first, second, missing = _paired(a, b)
    if weights and categories is None:
        x, y = coefficients.numbers(first, second)
    else:
        x, y = coefficients.places(coefficients.labels_of(categories, first, second), first, second)
    x, y, counts = coefficients.cells(x, y)
    return _figure((partial(coefficients.KAPPAS[weights], x, y), ALL_ONE), counts, sum(missing))


def krippendorff_alpha(units: Sequence[Sequence[Any]], *, level: Level = "nominal") -> Figure:
    """Krippendorff's alpha: 1 - observed disagreement inside units / that among all values (Krippendorff 2011).

    Two values disagree by 1 if they differ (``nominal``), or by the square of the difference of their ranks among all,
    ties averaged (``ordinal``: the same as his sum of counts), or of the numbers (``interval``); these need numbers.
    Undefined where all values of units with two or more are the same.

    Args:
        units: one sequence a response, what each of any number of raters gave it, or None. `n` counts those with two
            values or more, `left_out` the others.
        level: of measurement.
    """
    import numpy as np

    if level not in {"nominal", "ordinal", "interval"}:
        raise ValueError(f"level is {level!r}; it must be 'nominal', 'ordinal' or 'interval'")
    pairable = [unit for row in units if len(unit := [value for value in row if value is not None]) > 1]
    ratings = [value for unit in pairable for value in unit]
    (values,) = (
        coefficients.places(coefficients.labels_of(None, ratings), ratings)
        if level == "nominal"
        else coefficients.numbers(ratings)
    )
    if level == "ordinal":
        _, places, counts = np.unique(values, return_inverse=True, return_counts=True)
        values = coefficients.mid_ranks(counts.astype(np.float64))[places]
    unit_of = np.repeat(np.arange(len(pairable)), [len(unit) for unit in pairable])
    coefficient = partial(coefficients.alpha, values, unit_of, level == "nominal")
    figure = _figure((coefficient, ALL_ONE), np.ones(len(pairable), dtype=np.int64), len(units) - len(pairable))
    return figure if pairable else replace(figure, reason=NO_UNIT)


def spearman(a: Numbers, b: Numbers) -> Figure:
    """Spearman's rho: the correlation of the ranks, ties with their average rank (Spearman 1904).

    Undefined where either side gave the same value throughout, as in a single pair.
    """
    x, y, missing = _number_pairs(a, b)
    x, y, counts = coefficients.cells(x, y)
    return _figure((partial(coefficients.rho, x, y), ONE_SIDE), counts, sum(missing))


def mean_absolute_difference(a: Numbers, b: Numbers) -> Figure:
    """The mean of ``|b - a|``, in the unit of the values. Undefined only without a pair."""
    x, y, missing = _number_pairs(a, b)
    return mean_figure(abs(y - x), sum(missing))


def bias(a: Numbers, b: Numbers) -> Figure:
    """The mean of ``b - a``, in the unit of the values: above 0 where `b` gives more. Undefined only without a pair."""
    x, y, missing = _number_pairs(a, b)
    return mean_figure(y - x, sum(missing))


def share_within(a: Numbers, b: Numbers, tolerance: float) -> Figure:
    """The share of pairs with ``|b - a| <= tolerance``, in [0, 1]. Undefined only without a pair.

    Exactly the tolerance is within, also where rounding says otherwise: 0.8 and 0.7 are within 0.1.
    """
    x, y, missing = _number_pairs(a, b)
    return mean_figure(coefficients.within(tolerance, x, y), sum(missing))


def confusion(a: Sequence[Any], b: Sequence[Any], labels: Labels = None) -> Confusion:
    """How often which label of `a` met which of `b`; `labels` are all there may be, by default those seen, sorted."""
    first, second, missing = _paired(a, b)
    all_labels = coefficients.labels_of(labels, first, second)
    cells = Counter(zip(first, second, strict=True))
    table = tuple(tuple(cells[row, column] for column in all_labels) for row in all_labels)
    return Confusion(all_labels, table, sum(missing))


def numeric_agreement(
    a: Numbers, b: Numbers, *, tolerance: float, resamples: int = RESAMPLES, seed: int = 0
) -> Agreement:
    """Agreement on numbers of one scale, each figure with its 95 % bootstrap interval over the pairs.

    `mean_absolute_difference`, `share_within` and `bias` are means: BCa, see `evaltrack.stats.bootstrap.bca`.
    `quadratic_kappa`, `alpha_interval` and `spearman` share their resamples, of which percentiles are taken; where more
    than 2.5 % have no value there is no interval, as these might all lie beyond one end.
    Kappa is over the values as given: rounded to steps they would have another.

    Args:
        a: numbers of one evaluator.
        b: those of the other.
        tolerance: the difference up to which `share_within` counts a pair, in the unit of the values.
        resamples: how often to resample, at least 1.
        seed: of the random numbers, not negative.
    """
    x, y, missing = _number_pairs(a, b)
    u, v, counts = coefficients.cells(x, y)
    near = coefficients.within(tolerance, x, y)
    means = {"mean_absolute_difference": abs(y - x), "share_within": near, "bias": y - x}
    resampled: dict[str, Drawn] = {
        "quadratic_kappa": (partial(coefficients.quadratic_kappa, u, v), ALL_ONE),
        "alpha_interval": (partial(coefficients.alpha, *coefficients.as_units(u, v), False), ALL_ONE),
        "spearman": (partial(coefficients.rho, u, v), ONE_SIDE),
    }
    return Agreement(len(x), *missing, _figures(means, resampled, counts, sum(missing), resamples, seed))


def label_agreement(
    a: Sequence[Any], b: Sequence[Any], labels: Labels = None, *, resamples: int = RESAMPLES, seed: int = 0
) -> Agreement:
    """Agreement on labels: `accuracy` (share equal, a mean), `cohen_kappa`, `alpha_nominal`, and the confusion.

    Intervals, `resamples` and `seed` are as in `numeric_agreement`, `labels` as in `confusion`. To count a verdict that
    could not be read as a disagreement instead of leaving it out, give it a label of its own.
    """
    table = confusion(a, b, labels)
    first, second, missing = _paired(a, b)
    x, y = coefficients.places(table.labels, first, second)
    u, v, counts = coefficients.cells(x, y)
    resampled: dict[str, Drawn] = {
        "cohen_kappa": (partial(coefficients.nominal_kappa, u, v), ALL_ONE),
        "alpha_nominal": (partial(coefficients.alpha, *coefficients.as_units(u, v), True), ALL_ONE),
    }
    means = {"accuracy": (x == y).astype(float)}
    return Agreement(len(x), *missing, _figures(means, resampled, counts, sum(missing), resamples, seed), table)


def _paired(a: Sequence[Any], b: Sequence[Any]) -> tuple[list[Any], list[Any], tuple[int, int, int]]:
    """Both sides of the pairs with two values; and how many lack `a` alone, `b` alone, both."""
    if len(a) != len(b):
        raise ValueError(f"a has {len(a)} values and b {len(b)}; give one for each response, None where there is none")
    pairs = list(zip(a, b, strict=True))
    lacking = Counter((one is None, other is None) for one, other in pairs)
    both = [pair for pair in pairs if pair[0] is not None and pair[1] is not None]
    return [a for a, _ in both], [b for _, b in both], (lacking[True, False], lacking[False, True], lacking[True, True])


def _number_pairs(a: Numbers, b: Numbers) -> tuple[Floats, Floats, tuple[int, int, int]]:
    first, second, missing = _paired(a, b)
    x, y = coefficients.numbers(first, second)
    return x, y, missing


def _figure(resample: Drawn, counts: Integers, left_out: int) -> Figure:
    """The figure of the pairs as they are; `counts` is how often each of those is there that `drawn` is over."""
    import numpy as np

    n = int(counts.sum())
    if not n:
        return Figure(None, 0, left_out, NO_PAIR)
    coefficient, undefined = resample
    value = float(coefficient(counts[None].astype(np.float64))[0])
    return Figure(None, n, left_out, undefined) if isnan(value) else Figure(value, n, left_out)


def _figures(
    means: Mapping[str, Floats], drawn: Mapping[str, Drawn], counts: Integers, left_out: int, resamples: int, seed: int
) -> dict[str, Figure]:
    """All figures with their intervals; `counts` is as in `_figure`."""
    if resamples < 1:
        raise ValueError(f"resamples is {resamples}; an interval needs at least 1, better {RESAMPLES}")
    figures = {name: mean_figure(values, left_out) for name, values in means.items()}
    figures |= {name: _figure(each, counts, left_out) for name, each in drawn.items()}
    figures |= {name: with_bca(figures[name], each, resamples, seed) for name, each in means.items() if len(each)}
    defined = {name: coefficient for name, (coefficient, _) in drawn.items() if figures[name].value is not None}
    for name, values in coefficients.resampled(defined, counts, resamples, seed).items():
        figures[name] = with_percentiles(figures[name], values)
    return figures
