"""The table of a run in MLflow's artifact view."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaltrack.tracking.writer import table_json, table_of
from tests.rows_file import rich_rows


def test_the_table_has_no_texts_of_sources() -> None:
    table = table_of(rich_rows(("own",)), ("own",))
    assert table["retrieved"][:2] == ["a, B, c", "A, B, ?"]
    assert table["history"] == [*[None] * 6, "user: before"]
    assert table["own"] == [*[None] * 6, -1.5]
    assert not any("of a" in str(cell) for cells in table.values() for cell in cells)


def test_its_json_is_that_of_the_rows() -> None:
    table: dict[str, list[Any]] = {"question": ["NaN of Infinity", 'ü"\\\n\u2028'], "recall_at_k": [0.5, None]}
    read = json.loads(table_json(table))
    assert read == {"columns": list(table), "data": [list(row) for row in zip(*table.values(), strict=True)]}
    assert json.loads(table_json({"id": []})) == {"columns": ["id"], "data": []}
    with pytest.raises(ValueError, match="not JSON compliant"):
        table_json({"recall_at_k": [float("nan")]})
