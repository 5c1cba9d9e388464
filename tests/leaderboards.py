"""Contenders of a leaderboard out of plain scores, with the real light columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evaltrack.evaluation.ranking import Contender
from evaltrack.records import Failure
from tests.compared import found, question, row, side

Hit = bool | None
"""Whether a question found what it expects; None: the target failed."""


def contender(name: str, *seeds: Sequence[Hit], signature: dict[str, Any] | None = None, **fields: Any) -> Contender:
    """A configuration with a run for each of the `seeds`, of which each says what every question found."""
    sides = []
    for number, hits in enumerate(seeds):
        rows = [row(question(f"q{place}"), _given(place, hit), place) for place, hit in enumerate(hits)]
        sides.append(side(rows, f"{name}{number}", **(signature or {})))
    return Contender(
        name, tuple(each.info for each in sides), tuple(each.frame for each in sides), {"target": name}, **fields
    )


def _given(place: int, hit: Hit) -> Any:
    if hit is None:
        return Failure(kind="target_error", message="down")
    return found(f"q{place}!" if hit else "other")
