"""What the rows of a changed question show: their ranked sources and their answers."""

from __future__ import annotations

from itertools import islice

from evaltrack.compare.change import Change
from evaltrack.compare.ranks import in_order
from evaltrack.report.comparison.words import clip
from evaltrack.rows.stored_row import StoredRow


def ranked_sources(row: StoredRow | None, limit: int) -> list[tuple[str, bool]]:
    """The first `limit` sources by rank, repeats left out as in the scores: name, and whether it was expected."""
    if row is None:
        return []
    expected = set(row.expected_keys)
    first = islice(in_order(row), limit)
    return [(clip(row.name_of(source), 80), not expected.isdisjoint(keys)) for _, keys, source in first]


def answers(change: Change) -> tuple[str, str] | None:
    """The answers before and after, where both sides' rows are there and the answers differ."""
    if change.before is None or change.after is None:
        return None
    before, after = change.before.answer or "", change.after.answer or ""
    return (before, after) if before != after else None


def piece_words(text: str) -> tuple[str, str, str]:
    """A piece of a word diff as a line, between its spaces; what cannot be shown is a replacement character."""
    before, after = (" " if end.isspace() else "" for end in (text[:1], text[-1:]))
    return before, clip(text, 500) or "\N{REPLACEMENT CHARACTER}", after
