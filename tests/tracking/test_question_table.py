"""The table of a run in MLflow's artifact view."""

from __future__ import annotations

from pathlib import Path

from evaltrack.rows.reader import read_table
from evaltrack.tracking.question_table import columns_of_table, table_of
from tests.rows_file import rich_rows, written


def test_the_table_needs_no_texts_of_sources(tmp_path: Path) -> None:
    """It is the same from the columns that it names as from all of them."""
    path = written(rich_rows(("own",)), tmp_path / "rows.parquet", ("own",))
    table = table_of(read_table(path, columns_of_table(("own",))), ("own",))
    assert table == table_of(read_table(path), ("own",))
    assert table["retrieved"][:2] == ["a, B, c", "A, B, ?"]
    assert table["history"] == [*[None] * 6, "user: before"]
    assert table["wordings"] == [*[None] * 6, "0 of 1: q\n2 of 2: r"]
    assert table["own"] == [*[None] * 6, -1.5]
    assert not any("of a" in str(cell) for cells in table.values() for cell in cells)
