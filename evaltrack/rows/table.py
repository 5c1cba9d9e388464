"""Rows into a Parquet file, in batches, and the values of its columns back out."""

from __future__ import annotations

import heapq
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaltrack.records import Row
from evaltrack.rows.columns import COLUMNS, OBJECTS, Column, flatten, metadata, schema
from evaltrack.rows.stored_row import DamagedError

if TYPE_CHECKING:
    import pyarrow as pa


BATCH = 2000
"""Rows written to Parquet at a time, fewer where texts are long."""

GROUP_BYTES = 1 << 25
"""Characters of texts in what is written at a time."""

WINDOW = 5000
"""Finished rows held back at most so that the file keeps the order of the golden set."""

WINDOW_BYTES = 1 << 27
"""Characters of rows held back at most: a slow question must not gather gigabytes of others' answers."""

ROW_SIZE = 500
"""What a source, and a row, takes besides its texts, in characters."""


class TableWriter:
    """Streams rows into a Parquet file, in the order of the golden set.

    There is one row for each question; with `trials` one for each trial of it. `own` names the scores
    of one's own.

    A row that finished before its predecessors waits for them, up to `WINDOW` rows and `WINDOW_BYTES`; past that the
    order is given up rather than memory, and `position` still tells it.
    """

    def __init__(self, path: Path, k: int, trials: int = 0, own: tuple[str, ...] = ()) -> None:
        import pyarrow.parquet as pq

        fields = schema(own).with_metadata(metadata(own))
        self._writer = pq.ParquetWriter(path, fields, compression="zstd")
        self._k, self._trials, self._own = k, trials, own
        self._next = (0, 1)
        self._added = 0
        self._waiting: list[tuple[tuple[int, int], int, int, bool, Row]] = []
        self._held = 0
        self._batch: list[dict[str, Any]] = []
        self._characters = 0
        self.rows = 0

    def add(self, row: Row) -> None:
        """Take one row; it reaches the file with its batch."""
        self._added += 1
        trial = row.trial or 1
        is_last = trial >= self._trials
        size = _characters(row)
        place = (row.position, trial if self._trials else 1)
        heapq.heappush(self._waiting, (place, self._added, size, is_last, row))
        self._held += size
        while self._waiting and (
            self._waiting[0][0] <= self._next or len(self._waiting) > WINDOW or self._held > WINDOW_BYTES
        ):
            self._release()

    def close(self) -> None:
        """Write what waits, and close the file."""
        while self._waiting:
            self._release()
        self._flush()
        self._writer.close()

    def _release(self) -> None:
        (position, trial), _, size, is_last, row = heapq.heappop(self._waiting)
        self._held -= size
        self._next = (position + 1, 1) if is_last else (position, trial + 1)
        self._batch.append(flatten(row, self._k, self._own))
        self._characters += size
        self.rows += 1
        if len(self._batch) >= BATCH or self._characters >= GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        """Write the batch as one row group."""
        import pyarrow as pa

        if self._batch:
            self._writer.write_table(pa.Table.from_pylist(self._batch, schema=schema(self._own)))
            self._batch, self._characters = [], 0


def _characters(row: Row) -> int:
    """Of the texts of a row, roughly."""
    question, response, failure = row.question, row.response, row.failure
    size = ROW_SIZE + len(question.question) + len(question.expected_answer or "")
    if response is not None:
        sources = response.sources or ()
        size += len(response.answer or "") + ROW_SIZE * len(sources)
        size += sum(len(source.text or "") + len(source.title or "") for source in sources)
    size += sum(len(turn.content) for turn in question.history)
    if failure is not None:
        size += len(failure.traceback or "")
    for verdict in (*row.verdicts, *row.score_verdicts.values()):
        size += len(verdict.reasoning) + sum(map(len, verdict.observed.quotes if verdict.observed else ()))
    return size


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
