"""Which columns of which types a file of rows must have, whoever wrote it, and which version it may be of."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from typing import TYPE_CHECKING

from evaltrack.rows.parquet_claims import DamagedError
from evaltrack.rows.rows_error import damaged, newer
from evaltrack.rows.table import ROWS_VERSION, VERSION_KEY, schema

if TYPE_CHECKING:
    import pyarrow as pa

ADDED = frozenset({"model", "tool_invoked", "tools_coordinated", "sources_included"})
"""Columns that files of the first version lack; every file has the others."""


def check_version(name: str, metadata: dict[bytes, bytes] | None) -> None:
    """Refuse a file whose metadata name a newer version; files of before name none.

    Raises:
        RowsError: it is newer, or names no version.
    """
    text = (metadata or {}).get(VERSION_KEY.encode())
    if text is None:
        return
    if not text.isdigit() or len(text) > 9:
        raise damaged(name, f"its metadata `{VERSION_KEY}` hold no version")
    if int(text) > ROWS_VERSION:
        raise newer(name, int(text))


def check_types(found: pa.Schema) -> None:
    """Refuse columns of other types than evaltrack writes; columns that it does not know are left alone.

    Raises:
        DamagedError: a column is of another type, stands there twice, or none holds ids.
    """
    if len(set(found.names)) < len(found.names):
        raise DamagedError("two of its columns have one name")
    if "id" not in found.names:
        raise DamagedError("it has no column `id`")
    for field in found:
        if field.name in schema().names and not _same_type(field.type, schema().field(field.name).type):
            expected = schema().field(field.name).type
            hint = "; ids are text, as `5` and `05` differ" if field.name == "id" else ""
            held = f"holds {_plain_type(field.type)!s:.80}, not {expected!s:.80}{hint}"
            raise DamagedError(f"column `{field.name}` {held}")


def check_columns(names: Collection[str]) -> None:
    """Refuse a file that lacks a column which every version writes.

    Raises:
        DamagedError: there is none of a name; the first is named.
    """
    missing = [name for name in schema().names if name not in names and name not in ADDED]
    if missing:
        more = f", nor {len(missing) - 1} more" if len(missing) > 1 else ""
        raise DamagedError(f"it has no column `{missing[0]}`{more}")


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """Without the dictionaries as which texts are read."""
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_list(kind):
        return pa.list_(_plain_type(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _plain_type(each.type)) for each in kind])
    return kind


@cache
def text_paths() -> list[str]:
    """The columns of texts, inside of lists too, by their paths in a Parquet file."""
    import pyarrow as pa

    paths = []

    def look(path: str, kind: pa.DataType) -> None:
        if pa.types.is_string(kind):
            paths.append(path)
        elif pa.types.is_list(kind):
            look(f"{path}.list.element", kind.value_type)
        elif pa.types.is_struct(kind):
            for index in range(kind.num_fields):
                look(f"{path}.{kind.field(index).name}", kind.field(index).type)

    for field in schema():
        look(field.name, field.type)
    return paths


def _same_type(there: pa.DataType, expected: pa.DataType) -> bool:
    """Whether a column is of its type; texts are read as dictionaries, and a struct of before may lack a field."""
    import pyarrow as pa

    if pa.types.is_dictionary(there):
        there = there.value_type
    if pa.types.is_list(expected):
        return pa.types.is_list(there) and _same_type(there.value_type, expected.value_type)
    if pa.types.is_struct(expected):
        if not pa.types.is_struct(there):
            return False
        fields = {field.name: field.type for field in map(expected.field, range(expected.num_fields))}
        others = map(there.field, range(there.num_fields))
        return all(_same_type(field.type, fields[field.name]) for field in others if field.name in fields)
    return bool(there == expected)
