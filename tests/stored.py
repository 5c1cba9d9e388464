"""Rows of a table as tests change them."""

from __future__ import annotations

from typing import Any

from evaltrack.records import Row
from evaltrack.records.stored_row import StoredRow, stored_row
from evaltrack.tracking.rows import columns_of


def patched(row: StoredRow, **columns: Any) -> StoredRow:
    return StoredRow.of(columns_of(row) | columns)


def flatten(row: Row, k: int) -> dict[str, Any]:
    return columns_of(stored_row(row, k))
