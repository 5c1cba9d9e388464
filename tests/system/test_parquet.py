"""Reads a damaged Parquet file without ending the process."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaltrack.errors import EvaltrackError
from evaltrack.golden.importing.file_types import read_rows
from evaltrack.system.parquet import read_metadata
from evaltrack.tracking.rows import count_rows

OPTIONAL, REQUIRED = b"\x25\x02\x18\x02id", b"\x25\x00\x18\x02id"
"""How the schema of a file begins for a column `id` with and without nulls."""


@pytest.fixture
def damaged(tmp_path: Path) -> Path:
    """A file whose statistics of a column do not fit its schema."""
    path = tmp_path / "damaged.parquet"
    pq.write_table(pa.table({"id": ["a", "b"]}), path)
    assert read_metadata(path).row_group(0).column(0).num_values == 2
    content = path.read_bytes()
    assert content.count(OPTIONAL) == 1
    path.write_bytes(content.replace(OPTIONAL, REQUIRED))
    return path


def test_statistics_that_do_not_fit_the_schema_are_an_error(damaged: Path) -> None:
    with pytest.raises(EvaltrackError, match="cannot be read as Parquet"):
        list(read_rows(damaged))
    with pytest.raises(EvaltrackError, match="is damaged"):
        count_rows(damaged)
