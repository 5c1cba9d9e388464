"""The columns of one side of a comparison, in the order of the golden set.

Ids, digests and fingerprints are as large as all other columns; they are read when two sides are paired, one after the
other, and let go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from evaltrack.rows.fingerprints import EXPECTED, columns_of, fingerprint, with_num_expected
from evaltrack.system.limits import give_back

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    import pyarrow as pa
    from numpy.typing import NDArray

ID, DIGEST, JUDGED_DIGEST, POSITION = "id", "digest", "judged_digest", "position"
"""Columns that are not held. The third is of what a judge goes by, and runs of before have none."""

TablesOf = Callable[[Sequence[str]], Iterable["pa.Table"]]
"""Gives all rows with these columns, as far as they have them, in tables that come one after the other."""


class SideColumns:
    """`frame` holds the columns of these `names` but for those above, and how many sources are expected."""

    def __init__(self, tables_of: TablesOf, names: Sequence[str]) -> None:
        self._tables_of = tables_of
        wanted = [*(name for name in names if name not in (ID, DIGEST, JUDGED_DIGEST)), *EXPECTED]
        tables = (each.select([name for name in each.column_names if name in wanted]) for each in tables_of(wanted))
        frame = frame_of(map(with_num_expected, tables))
        self._order = _order(frame.pop(POSITION).to_numpy(), self._texts)
        self.frame = frame if self._order is None else _taken(frame, self._order)
        give_back()

    def ids(self) -> pa.Array:
        """The id of each row."""
        ids = self._texts()
        return ids if self._order is None else ids.take(self._order)

    def fingerprint(self, name: str) -> NDArray[np.uint64] | None:
        """A number for each row that stands for a part of it, or for the text in one column; None without it."""
        prints = fingerprint(self._tables_of(columns_of(name)), name)
        give_back()
        return prints if prints is None or self._order is None else prints[self._order]

    def _texts(self) -> pa.Array:
        import pyarrow as pa

        columns = (table[ID].cast(pa.large_string()) for table in self._tables_of([ID]))
        chunks = [chunk for column in columns for chunk in column.chunks]
        return pa.chunked_array(chunks, pa.large_string()).combine_chunks()


def frame_of(tables: Iterable[pa.Table]) -> pd.DataFrame:
    """The rows of the tables as a frame: flags are `boolean`, texts categories, numbers floats."""
    import pandas as pd
    import pyarrow as pa

    table = pa.concat_tables(tables)
    frame: pd.DataFrame = table.to_pandas()
    for field in table.schema:
        if pa.types.is_boolean(field.type):
            frame[field.name] = frame[field.name].astype("boolean")
        elif pa.types.is_string(field.type):
            frame[field.name] = frame[field.name].astype("category")
        elif pa.types.is_floating(field.type):
            frame[field.name] = pd.to_numeric(frame[field.name])
    return frame


def numbers(column: pd.Series) -> Any:
    """A new array of the floats of a column, NaN where there is none."""
    return column.to_numpy(dtype=float, na_value=float("nan"), copy=True)


def _taken(frame: pd.DataFrame, order: Any) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame({name: frame[name].array.take(order) for name in frame}, copy=False)


def _order(positions: Any, ids: Callable[[], pa.Array]) -> Any:
    """Where the rows stand in the order of the golden set, those of one position by their ids; None: as they are."""
    import numpy as np

    if (positions[1:] > positions[:-1]).all():
        return None
    order = np.argsort(positions, kind="stable")
    ascending = positions[order]
    if (ascending[1:] > ascending[:-1]).all():
        return order
    return np.lexsort((ids().to_numpy(zero_copy_only=False), positions))
