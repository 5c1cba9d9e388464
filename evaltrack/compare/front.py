"""Which configurations of a leaderboard are on the Pareto front of quality, cost and time. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from evaltrack.compare.leaderboard import Standing
from evaltrack.stats.pareto import pareto_front


def objectives_of(standings: Iterable[Standing], by: str) -> tuple[str, ...]:
    """The objectives that any ranked configuration measured."""
    ranked = [each for each in standings if each.rank is not None]
    measured = {
        "cost": any(each.cost is not None for each in ranked),
        "seconds": any(each.contender.seconds is not None for each in ranked),
    }
    return (by, *(name for name, there in measured.items() if there)) if ranked else ()


def with_front(standings: Sequence[Standing], by: str, objectives: Sequence[str], *, up: bool) -> tuple[Standing, ...]:
    """Whether each is on the Pareto front; one that lacks an objective is neither on it nor off it."""
    points = {each.name: _point(each, by, objectives) for each in standings if each.rank is not None}
    whole = {name: point for name, point in points.items() if None not in point}
    higher = [up, *(False for _ in objectives[1:])]
    front = pareto_front(whole, higher)  # type: ignore[arg-type]
    return tuple(replace(each, on_front=each.name in front if each.name in whole else None) for each in standings)


def _point(standing: Standing, by: str, objectives: Sequence[str]) -> tuple[float | None, ...]:
    others = {"cost": standing.cost, "seconds": standing.contender.seconds}
    return (standing.means[by].value, *(others[name] for name in objectives[1:]))
