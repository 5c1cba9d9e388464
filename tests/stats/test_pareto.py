"""The Pareto front, held against its definition."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltrack.stats.pareto import pareto_front

POINTS = st.dictionaries(
    st.text(min_size=1, max_size=3), st.tuples(*[st.integers(0, 4).map(float)] * 3), min_size=1, max_size=12
)
WAYS = st.tuples(st.booleans(), st.booleans(), st.booleans())


def test_a_point_is_on_the_front_unless_another_is_better() -> None:
    """Quality up, cost down: the cheap one and the good one stay, what is dearer and no better goes."""
    points = {"good": (0.9, 3.0), "cheap": (0.5, 1.0), "bad": (0.5, 2.0), "dear": (0.9, 4.0), "twin": (0.9, 3.0)}
    assert pareto_front(points, [True, False]) == {"good", "cheap", "twin"}


@given(POINTS, WAYS)
def test_who_is_off_the_front_is_dominated_by_who_is_on_it(
    points: dict[str, tuple[float, ...]], higher: tuple[bool, ...]
) -> None:
    """The front is never empty, no point of it beats another, and each of the others is beaten by one of it."""

    def beats(one: str, other: str) -> bool:
        pairs = [(a, b) if up else (-a, -b) for a, b, up in zip(points[one], points[other], higher, strict=True)]
        return all(a >= b for a, b in pairs) and any(a > b for a, b in pairs)

    front = pareto_front(points, higher)
    assert front
    assert not any(beats(one, other) for one in front for other in front)
    assert all(any(beats(one, other) for one in front) for other in points.keys() - front)


@given(POINTS, WAYS)
def test_the_best_of_one_objective_that_is_alone_is_on_it(
    points: dict[str, tuple[float, ...]], higher: tuple[bool, ...]
) -> None:
    """A point with the only best value of an objective cannot be beaten."""
    values = [point[0] for point in points.values()]
    best = max(values) if higher[0] else min(values)
    if values.count(best) == 1:
        assert next(name for name, point in points.items() if point[0] == best) in pareto_front(points, higher)


@pytest.mark.parametrize("point", [(1.0,), (1.0, float("nan")), (1.0, float("inf")), (1.0, 2.0, 3.0)])
def test_an_objective_that_is_no_number_is_refused(point: tuple[float, ...]) -> None:
    """An unmeasured value is left out before, never 0."""
    with pytest.raises(ValueError, match="give 2 finite numbers"):
        pareto_front({"a": point}, [True, True])
