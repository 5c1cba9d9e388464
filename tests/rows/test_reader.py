"""Rows from a file: as they were written, without reading what holds nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from evaltrack.errors import TrackingError
from evaltrack.rows.reader import read_lists, slim_rows, stored_rows
from tests.rows_file import rich_rows, written


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    """Also a list that is empty in every row, which is another thing than none."""
    rows = rich_rows()
    assert list(stored_rows(written(rows, tmp_path / "rows.parquet"))) == rows
    empty = [replace(row, sources=(), expected=(), tool_calls=()) for row in rows]
    assert list(stored_rows(written(empty, tmp_path / "empty.parquet"))) == empty


def test_slim_rows_lack_the_texts_of_sources_and_nothing_else(tmp_path: Path) -> None:
    rows = rich_rows()
    path = written(rows, tmp_path / "rows.parquet")
    assert any(source.text for row in rows for source in row.sources or ())
    assert list(slim_rows(path, {row.id for row in rows})) == [row.without_texts() for row in rows]
    assert list(slim_rows(path, {rows[1].id})) == [rows[1].without_texts()]


def test_an_error_names_the_rows_whatever_columns_are_read(tmp_path: Path) -> None:
    rows = rich_rows()
    path = written([replace(rows[0], difficulty="impossible"), *rows[1:]], tmp_path / "rows.parquet")
    with pytest.raises(TrackingError, match=f"column `difficulty` holds `impossible` in row `{rows[0].id}`"):
        read_lists(path, ["difficulty"])
