"""Which columns of which types a file of rows must have, whoever wrote it, and which version it may be of."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator
from functools import cache
from typing import TYPE_CHECKING

from evaltrack.records.own_score import MOST_SCORES, NAME_PATTERN
from evaltrack.rows.arrow_schema import OWN_KEY, ROWS_VERSION, VERSION_KEY, schema
from evaltrack.rows.columns import every_column
from evaltrack.rows.parquet_claims import DamagedError
from evaltrack.rows.rows_error import damaged, newer

if TYPE_CHECKING:
    import pyarrow as pa


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


def own_scores_in(actual: pa.Schema) -> tuple[str, ...]:
    """The names of the scores of one's own that a file says it holds; one that is a column of ours is left out.

    Raises:
        DamagedError: its metadata hold no such names, or it has no column of a name.
    """
    text = (actual.metadata or {}).get(OWN_KEY.encode())
    if text is None:
        return ()
    try:
        names = json.loads(text)
    except (ValueError, RecursionError):
        names = None
    sound = isinstance(names, list) and len(names) <= MOST_SCORES and len(text) < 100 * MOST_SCORES
    if not sound or not all(isinstance(name, str) and re.match(NAME_PATTERN, name) for name in names):
        raise DamagedError(f"its metadata `{OWN_KEY}` hold no names of scores")
    for name in names:
        if name not in actual.names:
            raise DamagedError(f"it has no column `{name}`")
    return tuple(name for name in dict.fromkeys(names) if name not in schema().names)


def check_types(actual: pa.Schema, own: tuple[str, ...] = ()) -> None:
    """Refuse columns of other types than evaltrack writes; columns that it does not know are left alone.

    Raises:
        DamagedError: a column is of another type, stands there twice, or none holds ids.
    """
    if len(set(actual.names)) < len(actual.names):
        raise DamagedError("two of its columns have one name")
    if "id" not in actual.names:
        raise DamagedError("it has no column `id`")
    expected = _types(own)
    for field in actual:
        if field.name in expected:
            _check_type(field.name, field.type, expected[field.name])


@cache
def _types(own: tuple[str, ...]) -> dict[str, pa.DataType]:
    return {field.name: field.type for field in schema(own)}


def _check_type(path: str, actual: pa.DataType, expected: pa.DataType) -> None:
    """Texts are read as dictionaries; whether a struct lacks a field is asked elsewhere."""
    import pyarrow as pa

    if actual == expected:
        return
    if pa.types.is_dictionary(actual):
        actual = actual.value_type
    if pa.types.is_list(expected) and pa.types.is_list(actual):
        _check_type(path, actual.value_type, expected.value_type)
    elif pa.types.is_struct(expected) and pa.types.is_struct(actual):
        own = {field.name: field.type for field in expected}
        for field in actual:
            if field.name in own:
                _check_type(f"{path}.{field.name}", field.type, own[field.name])
    elif actual != expected:
        hint = "; ids are text, as `5` and `05` differ" if path == "id" else ""
        raise DamagedError(f"column `{path}` holds {_type_words(actual)}, not {_type_words(expected)}{hint}")


def _type_words(kind: pa.DataType) -> str:
    """The type in a word: of a list or an object not what is in it."""
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return "objects"
    return "lists" if pa.types.is_list(kind) else f"{kind!s:.40}"


def check_columns(paths: Collection[str]) -> None:
    """Refuse a file that lacks a column which every version writes, or a field of its objects, as `sources.title`.

    Raises:
        DamagedError: there is none of a name; the first is named.
    """
    missing = [path for path, column in every_column() if column.since_first and path not in paths]
    if missing:
        more = f", nor {len(missing) - 1} more" if len(missing) > 1 else ""
        raise DamagedError(f"it has no column `{missing[0]}`{more}")


def paths_of(arrow_schema: pa.Schema) -> Iterator[str]:
    """The columns, and the fields of those that hold lists of objects."""
    import pyarrow as pa

    for field in arrow_schema:
        yield field.name
        if pa.types.is_list(field.type) and pa.types.is_struct(field.type.value_type):
            yield from (f"{field.name}.{each.name}" for each in field.type.value_type)


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
