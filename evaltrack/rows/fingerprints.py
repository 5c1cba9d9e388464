"""What a target gave and what a judge said, as one number a row, so that a million rows are held against each other
without being read whole.

Two rows with the same number hold the same: of a million pairs that differ one looks alike with odds of 1 in 10^10. A
part that a file lacks has no number.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from evaltrack.records.passage import title_key
from evaltrack.records.verdict import ANSWER_GRADES

if TYPE_CHECKING:
    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

_SOURCE = "sources.list.element."
PARTS = {
    "answer_print": ("answer", "abstained", "tool_calls", "error"),
    "sources_print": (f"{_SOURCE}chunk_id", f"{_SOURCE}title"),
    "texts_print": (f"{_SOURCE}text_digest",),
    "verdict_print": tuple(
        f"verdicts.list.element.{name}" for name in ("reasoning", *ANSWER_GRADES, "declined", "observed")
    ),
}
"""Each part and the columns it stands for: the answer, which sources in which order, their texts, the verdicts."""

EXPECTED = ("by_title", "expected")
"""The columns that say how many sources are expected."""

NUM_EXPECTED = "num_expected"
"""Column of how many sources are expected, by the key they are compared by; none where there is no expectation."""

_FACTOR = 6364136223846793005
_NOTHING = "\x1anothing\x1a"
"""Stands for a text that is not there; older pandas reads texts up to their first NUL, so that it holds none."""


def columns_of(name: str) -> tuple[str, ...]:
    """The columns that a fingerprint is made of: those of a part, else the column of this name alone."""
    return PARTS.get(name, (name,))


def fingerprint(tables: Iterable[pa.Table], name: str) -> NDArray[np.uint64] | None:
    """A number for each row of the tables, which come one after the other, of a part or of one column.

    None where the tables lack all of its columns, or there is no table.
    """
    import numpy as np

    numbers = [_of_table(table, columns_of(name)) for table in tables]
    there = [each for each in numbers if each is not None]
    return np.concatenate(there) if there and len(there) == len(numbers) else None


@cache
def nothing() -> np.uint64:
    """What stands for a text that is not there."""
    import numpy as np
    import pyarrow as pa

    (number,) = _hashes(pa.array([None], pa.string()))
    return np.uint64(number)


def _of_table(table: pa.Table, paths: Sequence[str]) -> NDArray[np.uint64] | None:
    hashes = [path_hashes for path in paths if (path_hashes := _of_path(table, path)) is not None]
    return _combine(hashes) if hashes else None


def _of_path(table: pa.Table, path: str) -> Any:
    """The hashes of one column, or of one field of the structs in a list; None where the table lacks it."""
    column, _, field = path.partition(".list.element.")
    if column not in table.column_names:
        return None
    array = table[column].combine_chunks()
    if not field:
        return _hashes(array)
    if array.type.value_type.get_field_index(field) < 0:
        return None
    return _of_lists(array, _hashes(array.values.field(field)))


def _hashes(array: pa.Array) -> Any:
    """A hash for each value; null has its own."""
    import pandas as pd
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_list(array.type):
        return _of_lists(array, _hashes(array.values))
    if not pa.types.is_string(array.type):
        array = pc.cast(array, pa.string())
    texts = pc.fill_null(array, _NOTHING).to_numpy(zero_copy_only=False)
    return pd.util.hash_array(texts, categorize=True)


def _of_lists(array: pa.Array, values: Any) -> Any:
    """One hash for each list out of those of its values in their order; overflow is meant."""
    import numpy as np

    offsets = np.asarray(array.offsets)
    lengths = np.diff(offsets)
    places = np.arange(offsets[0], offsets[-1]) - np.repeat(offsets[:-1], lengths)
    powers = np.power(np.uint64(_FACTOR), places.astype(np.uint64) + np.uint64(1))
    sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(values[offsets[0] : offsets[-1]] * powers)])
    ends = offsets - offsets[0]
    hashes = sums[ends[1:]] - sums[ends[:-1]] + lengths.astype(np.uint64)
    hashes[np.asarray(array.is_null())] = np.uint64(_FACTOR)
    return hashes


def _combine(hashes: list[Any]) -> Any:
    import numpy as np

    combined = hashes[0].copy()
    for each in hashes[1:]:
        combined = combined * np.uint64(_FACTOR) + each
    return combined


def with_num_expected(table: pa.Table) -> pa.Table:
    """The table with the column `NUM_EXPECTED` instead of those of `EXPECTED`; as it is where it lacks these."""
    import pyarrow as pa

    if "expected" not in table.column_names:
        return table.drop_columns([name for name in EXPECTED if name in table.column_names])
    counts = pa.array(_num_expected(table), pa.float64())
    names = [name for name in table.column_names if name not in EXPECTED]
    return table.select(names).append_column(NUM_EXPECTED, counts)


def _num_expected(table: pa.Table) -> list[float | None]:
    titled = table["by_title"].to_pylist() if "by_title" in table.column_names else [False] * table.num_rows
    return [
        None if names is None else float(len({title_key(name) if by_title else name for name in names}))
        for names, by_title in zip(table["expected"].to_pylist(), titled, strict=True)
    ]
