"""Columns of many rows in little memory: where few values are distinct, a byte or two a row say which one it is."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

FEW = 0.5
"""Distinct numbers for each row of a part, up to which they are held as codes."""

SMALL = 1000
"""Rows of a part that is too small to say how many distinct numbers there are."""

UNITED = 32
"""Parts of a column that are united at a time."""


def coded_frame(tables: Iterable[pa.Table]) -> pd.DataFrame:
    """The rows of the tables, which come one after the other.

    Texts and numbers are categorical; numbers that are mostly distinct, and integers, stand as they are; flags are
    `boolean`. `numbers` decodes a column.
    """
    import pandas as pd

    columns: dict[str, _Column] = {}
    for table in tables:
        for name in table.column_names:
            columns.setdefault(name, _Column()).add(table[name])
    return pd.DataFrame({name: column.array() for name, column in columns.items()}, copy=False)


def numbers(column: pd.Series) -> Any:
    """The values of a column of numbers as an array of floats, NaN where there is none."""
    return _decoded(column.array)


def _decoded(array: Any) -> Any:
    import numpy as np
    import pandas as pd

    if isinstance(array, pd.Categorical):
        return np.append(array.categories.to_numpy(dtype=float), np.nan)[array.codes]
    return pd.Series(array, copy=False).to_numpy(dtype=float, na_value=np.nan)


class _Column:
    """One column, taken part by part."""

    def __init__(self) -> None:
        self._parts: list[Any] = []
        self._is_coded = True

    def add(self, column: pa.ChunkedArray) -> None:
        """Take the next rows."""
        import pyarrow as pa

        for chunk in column.chunks or [pa.array([], column.type)]:
            part = _part(chunk)
            if self._is_coded and _are_distinct(part):
                self._is_coded = False
                self._parts = [_decoded(each) for each in self._parts]
            self._parts.append(part if self._is_coded else _decoded(part))
            if len(self._parts) == UNITED:
                self._parts = [self.array()]

    def array(self) -> Any:
        """All rows that were taken."""
        import pandas as pd

        if len(self._parts) == 1:
            return self._parts[0]
        if isinstance(self._parts[0], pd.Categorical):
            return pd.api.types.union_categoricals(self._parts)
        return pd.concat([pd.Series(part, copy=False) for part in self._parts], ignore_index=True).array


def _part(chunk: pa.Array) -> Any:
    """The rows of one part: codes, flags or integers."""
    import pandas as pd
    import pyarrow as pa

    if pa.types.is_boolean(chunk.type):
        flags = chunk.fill_null(False).to_numpy(zero_copy_only=False)
        return pd.arrays.BooleanArray(flags, chunk.is_null().to_numpy(zero_copy_only=False))
    if pa.types.is_integer(chunk.type) and not chunk.null_count:
        return chunk.to_numpy(zero_copy_only=False)
    if pa.types.is_string(chunk.type):
        encoded = chunk.dictionary_encode()
        codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
        return pd.Categorical.from_codes(codes, pd.Index(encoded.dictionary.to_pylist(), dtype=text_type()))
    codes, values = pd.factorize(chunk.to_numpy(zero_copy_only=False).astype(float))
    return pd.Categorical.from_codes(codes, pd.Index(values))


def text_type() -> Any:
    """The type of texts in pandas: the older `str` makes a text of a missing value."""
    import pandas as pd

    return "str" if pd.__version__ >= "3" else "string[pyarrow_numpy]"


def _are_distinct(part: Any) -> bool:
    """Whether codes of these numbers would take as much as the numbers themselves."""
    import pandas as pd

    if not isinstance(part, pd.Categorical) or not pd.api.types.is_numeric_dtype(part.categories.dtype):
        return False
    return len(part) >= SMALL and len(part.categories) > FEW * len(part)
