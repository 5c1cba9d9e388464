"""The sources of a row by the key they are compared by, and where each stands."""

from __future__ import annotations

from typing import Any

from evaltrack.rows.table import FlatRow
from evaltrack.scoring.retrieval import title_key

Ranked = dict[str, tuple[int, FlatRow]]
"""Each source returned with its rank, by the key it is compared by; the best first."""

NAMELESS = "\0"
"""Begins the key of a source that lacks the one it is compared by; such a key says nothing but its place."""


def by_key(row: FlatRow) -> Ranked:
    """Each source returned, by the key it is compared by, with its first rank among distinct keys."""
    found: Ranked = {}
    for place, source in enumerate(row["sources"] or ()):
        found.setdefault(source_key(source, row, place), (len(found) + 1, source))
    return found


def source_key(source: dict[str, Any], row: FlatRow, place: int) -> str:
    """The key that the source at this place of the row is compared by."""
    name: str | None = source["title"] if row["by_title"] else source["chunk_id"]
    key = title_key(name) if name and row["by_title"] else name
    return key or f"{NAMELESS}{place}"


def expected_keys(row: FlatRow) -> list[str]:
    """What is expected of the question, as sources are compared."""
    expected = row["expected"] or []
    return [title_key(title) for title in expected] if row["by_title"] else list(expected)


def source_name(source: dict[str, Any], row: FlatRow) -> str:
    """The source's name for people."""
    name: str | None = (source["title"] if row["by_title"] else source["chunk_id"]) or source["title"]
    return name or "?"
