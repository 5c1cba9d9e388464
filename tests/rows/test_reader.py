"""Rows from a file: as they were written, without reading what holds nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from evaltrack.errors import TrackingError
from evaltrack.rows.plain_arrays import TEXT_LIMIT
from evaltrack.rows.reader import read_columns, read_lists, read_table, slim_rows, stored_rows
from evaltrack.rows.rows_file import RowsFile
from evaltrack.rows.stored_row import StoredRow
from evaltrack.tracking.question_table import columns_of_table, table_of
from tests.rows_file import rich_rows, written


def test_rows_come_back_as_they_were(tmp_path: Path) -> None:
    """Also a list that is empty in every row, which is another thing than none."""
    rows = rich_rows()
    assert list(stored_rows(written(rows, tmp_path / "rows.parquet"))) == rows
    empty = [replace(row, sources=(), expected=(), tool_calls=()) for row in rows]
    assert list(stored_rows(written(empty, tmp_path / "empty.parquet"))) == empty


def test_slim_rows_lack_the_texts_of_sources_and_nothing_else(tmp_path: Path) -> None:
    """Of the ids that are named alone."""
    rows = rich_rows()
    path = written(rows, tmp_path / "rows.parquet")
    assert any(source.text for row in rows for source in row.sources or ())
    assert list(slim_rows(path, {row.id for row in rows})) == [row.without_texts() for row in rows]
    assert list(slim_rows(path, {rows[1].id})) == [rows[1].without_texts()]


def test_columns_that_hold_nothing_are_not_read(tmp_path: Path) -> None:
    """They are null in every row all the same; lists, and what no row may lack, are always looked at."""
    path = written([replace(rich_rows()[0], category=None)], tmp_path / "rows.parquet")
    with RowsFile(path) as table:
        names = table.worth_reading
    assert {"id", "domain", "recall_at_k", "sources", "tool_calls", "history"} <= set(names)
    assert {"category", "traceback", "negative_pass", "trial"}.isdisjoint(names)
    bad = written([replace(row, digest=None) for row in rich_rows()], tmp_path / "bad.parquet")  # type: ignore[arg-type]
    with pytest.raises(TrackingError, match="column `digest` is empty in some rows"):
        list(stored_rows(bad))


def test_an_error_names_the_rows_whatever_columns_are_read(tmp_path: Path) -> None:
    """Also where ids are not among them."""
    rows = rich_rows()
    path = written([replace(rows[0], difficulty="impossible"), *rows[1:]], tmp_path / "rows.parquet")
    with pytest.raises(TrackingError, match=f"column `difficulty` holds `impossible` in row `{rows[0].id}`"):
        read_columns(path, ["difficulty"])


def test_a_text_that_is_cut_says_how_much_is_left_out(tmp_path: Path) -> None:
    """In the table of MLflow too; one that just fits stays as it is."""
    row = replace(rich_rows()[0], answer="ü" * (TEXT_LIMIT + 12), expected_answer="ü" * TEXT_LIMIT, category=None)
    path = written([row, rich_rows()[1]], tmp_path / "rows.parquet")
    first, second = stored_rows(path)
    assert first.answer == "ü" * TEXT_LIMIT + " [... characters left out: 12]"
    assert first.expected_answer == "ü" * TEXT_LIMIT
    assert (first.category, second.answer) == (None, None)
    table = table_of(read_lists(path, columns_of_table(())))
    assert str(table["answer"][0]).endswith("ü [... characters left out: 12]")


@pytest.mark.parametrize("columns", [None, ["id", "sources"], ["id", "sources.list.element.title", "expected"]])
def test_rows_made_of_columns_are_those_made_one_by_one(columns: list[str] | None, tmp_path: Path) -> None:
    """With and without sources, verdicts, wordings and turns, whichever columns are read."""
    rows = rich_rows()
    rows += [replace(rows[0], id="none", sources=None, expected=None), replace(rows[1], id="empty", sources=())]
    rows += [replace(row, id=f"{row.id}-{number}") for number in range(200) for row in rows]
    path = written(rows, tmp_path / "rows.parquet")
    assert list(stored_rows(path, columns)) == [StoredRow.of(row) for row in read_table(path, columns)]
