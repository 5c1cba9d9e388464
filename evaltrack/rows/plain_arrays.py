"""Arrays of a file of rows in memory: their size, and their values as plain texts and numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evaltrack.rows.columns import every_column
from evaltrack.rows.values import LARGEST

if TYPE_CHECKING:
    import pyarrow as pa

TEXT_LIMIT = 200_000
"""Characters kept of any one text; behind them stands how many are left out."""

UNBOUNDED = frozenset(path for path, column in every_column() if column.unbounded)
"""Numbers that may lie above `LARGEST` in a sound row, and are read as null there."""


def stored_size(array: pa.Array) -> int:
    """Bytes of an array once each text stands in it, cut."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(array.type):
        lengths = pc.min_element_wise(pc.binary_length(array.dictionary), 4 * TEXT_LIMIT)
        texts = pc.sum(pc.cast(lengths.take(array.indices), pa.int64())).as_py() or 0
        return int(texts) + int(array.indices.nbytes)
    if pa.types.is_list(array.type):
        return stored_size(array.flatten()) + int(array.offsets.nbytes)
    if pa.types.is_struct(array.type):
        return sum(stored_size(child) for child in array.flatten())
    return int(array.nbytes)


def plain_column(name: str, column: pa.ChunkedArray) -> pa.ChunkedArray:
    """A column with plain texts and the numbers that an evaluation can hold; `name` is its path."""
    import pyarrow as pa

    chunks = [_plain(name, chunk) for chunk in column.chunks]
    return pa.chunked_array(chunks, type=chunks[0].type if chunks else column.type)


def _plain(name: str, array: pa.Array) -> Any:
    """The array with plain texts, those above `TEXT_LIMIT` cut, and null for numbers that tell nothing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(array.type):
        texts = array.dictionary
        if (pc.max(pc.binary_length(texts)).as_py() or 0) > TEXT_LIMIT:
            texts.validate(full=True)
            texts = _cut(texts)
        return texts.take(array.indices)
    if pa.types.is_list(array.type):
        return pa.ListArray.from_arrays(array.offsets, _plain(name, array.values), mask=array.is_null())
    if pa.types.is_struct(array.type):
        names = [array.type.field(index).name for index in range(array.type.num_fields)]
        fields = [_plain(f"{name}.{each}", array.field(index)) for index, each in enumerate(names)]
        return pa.StructArray.from_arrays(fields, names, mask=array.is_null())
    if name in UNBOUNDED:
        large = pc.and_(pc.greater(pc.abs(array), LARGEST), pc.is_finite(array))
        return pc.if_else(large, None, array)
    return array


def _cut(texts: Any) -> Any:
    """The texts in `TEXT_LIMIT` characters each; one that was longer ends with ``[... characters left out: 4711]``."""
    import pyarrow as pa
    import pyarrow.compute as pc

    before, after, nothing = (pa.scalar(each, texts.type) for each in (" [... characters left out: ", "]", ""))
    left_out = pc.subtract(pc.utf8_length(texts), TEXT_LIMIT)
    first = pc.utf8_slice_codeunits(texts, 0, TEXT_LIMIT)
    marked = pc.binary_join_element_wise(first, before, pc.cast(left_out, texts.type), after, nothing)
    return pc.if_else(pc.greater(left_out, 0), marked, texts)
