"""Rows of a table as tests change them."""

from __future__ import annotations

from typing import Any

from evaltrack.rows.stored_row import StoredRow


def patched(row: StoredRow, **columns: Any) -> StoredRow:
    return StoredRow.of(row.columns() | columns)
