"""The Arrow schema of the columns of a row, and what a file says of them in its metadata."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING

from evaltrack.rows.column import Column
from evaltrack.rows.columns import columns_with

if TYPE_CHECKING:
    import pyarrow as pa

ROWS_VERSION = 1
"""Raised by one when a column changes its meaning or goes; one more column is no other version."""

OWN_KEY = "evaltrack.own_scores"
"""Key of the names of the scores of one's own in a file's metadata: a list in JSON; files without any have no key."""

VERSION_KEY = "evaltrack.rows"
"""Key of the version in a file's metadata; files of before have none."""


@cache
def schema(own: tuple[str, ...] = ()) -> pa.Schema:
    """The Arrow schema of the columns, with scores of one's own."""
    import pyarrow as pa

    return pa.schema({column.name: _arrow_type(column) for column in columns_with(own)})


def metadata(own: tuple[str, ...] = ()) -> dict[str, str]:
    """What a file says of its columns."""
    return {VERSION_KEY: str(ROWS_VERSION)} | ({OWN_KEY: json.dumps(own)} if own else {})


def _arrow_type(column: Column) -> pa.DataType:
    import pyarrow as pa

    if column.type == "objects":
        return pa.list_(pa.struct({each.name: _arrow_type(each) for each in column.fields}))
    types = {"text": pa.string(), "number": pa.float64(), "integer": pa.int64(), "flag": pa.bool_()}
    return pa.list_(pa.string()) if column.type == "texts" else types[column.type]
