"""The sources of a row by the key they are compared by, and where each stands."""

from __future__ import annotations

from evaltrack.rows.stored_row import StoredRow, StoredSource

Ranked = dict[str, tuple[int, StoredSource]]
"""Each source returned with its rank, by the key it is compared by; the best first."""


def by_key(row: StoredRow) -> Ranked:
    """Each source returned, by the key it is compared by, with its first rank among distinct keys."""
    ranked: Ranked = {}
    for key, source in zip(row.source_keys, row.sources or (), strict=True):
        ranked.setdefault(key, (len(ranked) + 1, source))
    return ranked
