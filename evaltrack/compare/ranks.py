"""The sources of a row by the keys they are compared by, and where each stands."""

from __future__ import annotations

from collections.abc import Iterator

from evaltrack.rows.stored_parts import StoredSource
from evaltrack.rows.stored_row import StoredRow

Ranked = dict[str, tuple[int, StoredSource]]
"""Each source returned with its rank, by the keys it is compared by; the best first.

A source that finds several passages stands there under each of them.
"""

LEAST_RECIPROCAL = 1e-6
"""Below it a reciprocal rank is none: no response has a million sources."""


def in_order(row: StoredRow) -> Iterator[tuple[int, tuple[str, ...], StoredSource]]:
    """The distinct sources with their ranks, from 1, and the keys they are compared by."""
    seen, rank = set[str](), 0
    for keys, source in zip(row.source_keys, row.sources or (), strict=True):
        if keys[0] not in seen:
            seen.update(keys)
            rank += 1
            yield rank, keys, source


def by_key(row: StoredRow) -> Ranked:
    """Each source returned, by the keys it is compared by, with its rank among distinct sources."""
    return {key: (rank, source) for rank, keys, source in in_order(row) for key in keys}


def scored_rank(reciprocal: float | None, trials: int | None) -> int | None:
    """The rank that a reciprocal rank is of; None where that is zero, or the mean of several trials."""
    if reciprocal is None or reciprocal < LEAST_RECIPROCAL or trials is not None:
        return None
    return round(1 / reciprocal)


def first_rank(row: StoredRow) -> int | None:
    """The rank of the first expected source among all distinct ones that were returned; None if none was."""
    if rank := scored_rank(row.scores.get("reciprocal_rank"), row.trials):
        return rank
    expected = set(row.expected_keys)
    return next((rank for rank, keys, _ in in_order(row) if not expected.isdisjoint(keys)), None)
