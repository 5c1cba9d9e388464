"""The Pareto front: what no other point beats in one objective without losing in another (V. Pareto, 1906)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite


def pareto_front(points: Mapping[str, Sequence[float]], higher_is_better: Sequence[bool]) -> frozenset[str]:
    """The names of the points that no other one dominates: is as good in every objective, and better in one.

    Points that are equal in every objective do not dominate each other.

    Args:
        points: One number for each objective, by name.
        higher_is_better: For each objective which way is better.

    Raises:
        ValueError: A point has another number of objectives, or one that is NaN or infinite.
    """
    signed = {}
    for name, values in points.items():
        if len(values) != len(higher_is_better) or not all(map(isfinite, values)):
            raise ValueError(f"`{name}` has {list(values)}; give {len(higher_is_better)} finite numbers")
        signed[name] = tuple(v if higher else -v for v, higher in zip(values, higher_is_better, strict=True))
    return frozenset(
        name for name, point in signed.items() if not any(_dominates(other, point) for other in signed.values())
    )


def _dominates(one: Sequence[float], other: Sequence[float]) -> bool:
    """Whether `one` is as good in every objective, larger being better, and not the same."""
    return all(a >= b for a, b in zip(one, other, strict=True)) and tuple(one) != tuple(other)
