"""Which values the columns of a file of rows may hold: each on its scale, nothing missing, no row twice."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from evaltrack.rows.column import Column
from evaltrack.rows.columns import COLUMNS, OBJECTS
from evaltrack.rows.rows_error import DamagedError

if TYPE_CHECKING:
    import pyarrow as pa

LARGEST = 1e15
"""Above this no score that means something can be."""

ROUNDING = 1e-9
"""How far a computed score may lie beside its scale."""

BY_PATH = {column.name: column for column in COLUMNS}
BY_PATH |= {f"{column.name}.{each.name}": each for column in COLUMNS for each in column.fields}

SHOWN = 3
"""Rows that a message names."""


def check_ids(tables: Iterable[pa.Table]) -> None:
    """Refuse rows that are in a file twice, by the columns of these tables, of which `id` is the first.

    Raises:
        DamagedError: some are; the first ids are named.
    """
    import pyarrow as pa

    parts = list(tables)
    keys = pa.concat_tables(parts).to_pandas() if parts else None
    if keys is not None and (repeated := keys.duplicated()).any():
        raise DamagedError(f"several rows have one id: {_id_words([*dict.fromkeys(keys['id'][repeated])])}")


def check_values(table: pa.Table) -> None:
    """Refuse values that no evaluation can hold, in the columns that were read.

    Raises:
        DamagedError: a value is missing, not finite, off its scale, or none of a list.
    """
    for name in table.column_names:
        column = BY_PATH.get(name)
        for array in table[name].chunks:
            if column and column.required and _has_gaps(array, column):
                raise DamagedError(f"column `{name}` is empty in some rows")
            _check_array(name, array, table)
    for name in set(OBJECTS) & set(table.column_names):
        _check_objects(name, table[name])


def _has_gaps(array: Any, column: Column) -> bool:
    import pyarrow.compute as pc

    return bool(array.null_count or (column.type == "text" and pc.any(pc.equal(array, "")).as_py()))


def _check_array(name: str, array: Any, table: pa.Table) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_list(array.type):
        if array.flatten().null_count:
            raise DamagedError(f"a list in column `{name}` holds nothing where something belongs")
        _check_array(name, array.flatten(), table)
    elif pa.types.is_struct(array.type):
        for index, child in enumerate(array.flatten()):
            _check_array(f"{name}.{array.type.field(index).name}", child, table)
    elif pa.types.is_floating(array.type) or pa.types.is_integer(array.type):
        low, high = BY_PATH[name].bounds if name in BY_PATH else (-LARGEST, LARGEST)  # a score of one's own
        if pa.types.is_floating(array.type):
            low, high = low - ROUNDING, high + ROUNDING
        _check_all(name, array, pc.and_(pc.greater_equal(array, low), pc.less_equal(array, high)), table)
    elif name in BY_PATH and (choices := BY_PATH[name].choices):
        _check_all(name, array, pc.or_(pc.is_null(array), pc.is_in(array, pa.array(choices))), table)


def _check_all(name: str, array: Any, sound: Any, table: pa.Table) -> None:
    import pyarrow.compute as pc

    if pc.all(sound).as_py() is not False:
        return
    wrong = pc.fill_null(pc.invert(sound), False)
    value = array.filter(wrong)[0].as_py()
    value_text = f"{value:g}" if isinstance(value, int | float) else f"`{value:.40}`"
    in_rows = "id" in table.column_names and len(wrong) == table.num_rows
    place = f" in row {_id_words(table['id'].filter(wrong).to_pylist())}" if in_rows else ""
    raise DamagedError(f"column `{name}` holds {value_text}{place}")


def _check_objects(name: str, column: pa.ChunkedArray) -> None:
    """Each is an object in JSON."""
    for text in column.unique().drop_null().to_pylist():
        try:
            sound = isinstance(json.loads(text), dict)
        except (ValueError, RecursionError):
            sound = False
        if not sound:
            raise DamagedError(f"column `{name}` holds a text that is no object in JSON")


def _id_words(ids: Sequence[str]) -> str:
    texts = (text if text.isprintable() else repr(text) for text in ids[:SHOWN])
    return ", ".join(f"`{text:.40}`" for text in texts) + (", ..." if len(ids) > SHOWN else "")
