"""At which rank the first expected source came."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from evaltrack.compare.ranks import first_rank, scored_rank
from evaltrack.records.amount import count
from evaltrack.report.pictures.svg import bar, drawing, left_out, words
from evaltrack.rows.stored_row import StoredRow

SINGLE = 20
"""Up to this k each rank has a bar of its own; above it bars hold the ranks up to 1, 2, 3, 5, 10, 20, 50, …"""

BEYOND, ABSENT = "beyond k", "not returned"


class Ranks:
    """The ranks of all questions that retrieval was measured on, counted as they come by."""

    def __init__(self, k: int) -> None:
        self._k, self._ends = k, rank_ends(k)
        self._found: Counter[str] = Counter()
        self._rows = 0
        self._labels = [_label(low + 1, high) for low, high in zip((0, *self._ends), self._ends, strict=False)]
        self._trials = False

    def add(self, row: Mapping[str, Any]) -> None:
        """Count one row, as columns."""
        self._rows += 1
        reciprocal, is_mean = row["reciprocal_rank"], row["trials"] is not None
        if reciprocal is None or row["sources"] is None or not row["expected"]:
            return
        self._trials |= is_mean
        rank = scored_rank(reciprocal, row["trials"]) or first_rank(StoredRow.of(row))
        if rank is None:
            self._found[ABSENT] += 1
        else:
            self._found[BEYOND if rank > self._k else self._labels[bisect_left(self._ends, rank)]] += 1

    def svg(self) -> str:
        """The histogram; empty where retrieval was not measured."""
        measured = sum(self._found.values())
        if not measured:
            return ""
        notes = [left_out(self._rows - measured, self._rows, "retrieval was not measured")]
        if self._trials:
            notes.append("of several trials the rank is that of the one whose sources the row shows")
        labels = [*self._labels, BEYOND, ABSENT]
        below = 74 + 24 * len(labels)
        parts = [*self._bars(labels, measured), *(words(20, below + 16 * i, n, "dim") for i, n in enumerate(notes))]
        title = f"Rank of the first expected source, {count(measured, 'question')}, k = {self._k}"
        return drawing(640, below + 16 * len(notes), title, parts)

    def _bars(self, labels: list[str], measured: int) -> Iterator[str]:
        most = max(self._found.values())
        for place, label in enumerate(labels):
            y, count = 46 + 24 * place + (6 if place >= len(self._labels) else 0), self._found[label]
            kind = "bar" if place < len(self._labels) else "miss"
            yield words(120, y + 14, label, anchor="end")
            yield bar(130, y, 370 * count / most, 18, kind)
            yield words(136 + 370 * count / most, y + 14, f"{count:,} ({100 * count / measured:.1f} %)")


def rank_ends(k: int) -> list[int]:
    """The last rank of each bar, ascending; the last is k."""
    if k <= SINGLE:
        return list(range(1, k + 1))
    steps = [1, 2, 3, 5, *(factor * size for size in (10, 100, 1000, 10_000) for factor in (1, 2, 5))]
    return [*(step for step in steps if step < k), k]


def _label(low: int, high: int) -> str:
    return f"{high}" if low == high else f"{low} to {high}"
