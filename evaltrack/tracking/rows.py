"""Writes a run's result rows as a Parquet table, whose columns and value checks come from the fields of `StoredRow`.

Ids are strings. A value that was not measured is null, and the reason is in `unmeasured` or `error`. Lists and objects
are JSON texts.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from sys import float_info
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from pydantic_core import to_json

from evaltrack.errors import TrackingError
from evaltrack.metrics.catalogue import SCORES
from evaltrack.records import Row
from evaltrack.records.stored_row import (
    FIELDS,
    LARGEST_COUNT,
    NUM_EXPECTED,
    PRINTS,
    StoredRow,
    adapter,
    compared_columns,
    stored_row,
)
from evaltrack.records.verdict import LARGEST_SCORE

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True)
class Column:
    """One column of the file.

    Args:
        name: Name in the file.
        type: Type of its values in JSON Schema. An `array` or `object` is a JSON text.
        required: True if no file of evaltrack has null there.
        low: Least number.
        high: Largest number.
        choices: The allowed texts; empty if any is allowed.
    """

    name: str
    type: str
    required: bool = False
    low: float = 0
    high: float = LARGEST_COUNT
    choices: tuple[str, ...] = ()

    @property
    def is_json(self) -> bool:
        """True if its values are JSON texts."""
        return self.type in ("array", "object")


@cache
def columns_with(own: tuple[str, ...] = ()) -> tuple[Column, ...]:
    """Return the columns of a run in the order for readers. `own` names the user's own scores."""
    fields = [_column(name, schema) for name, schema in adapter().json_schema()["properties"].items() if name in FIELDS]
    place = [column.name for column in fields].index("unmeasured")
    ours = (Column(each.name, "number", high=float_info.max if each.span is None else each.span) for each in SCORES)
    others = (Column(name, "number", low=-LARGEST_SCORE, high=LARGEST_SCORE) for name in own)
    return (*fields[:place], *ours, *others, *fields[place:])


def _column(name: str, schema: Mapping[str, Any]) -> Column:
    value, *null = schema.get("anyOf", [schema])
    bounds = {side: value[word] for side, word in (("low", "minimum"), ("high", "maximum")) if word in value}
    choices = tuple(value.get("enum", ()))
    required = not null and value["type"] not in ("array", "object")
    return Column(name, value["type"], required, **bounds, choices=choices)


def json_names(own: tuple[str, ...] = ()) -> list[str]:
    """Return the names of the columns that hold JSON texts."""
    return [column.name for column in columns_with(own) if column.is_json]


COMPARED = (
    *(Column(name, "integer", low=-(1 << 63), high=(1 << 63) - 1) for name in PRINTS),
    Column(NUM_EXPECTED, "integer"),
)
"""Columns of the file that only comparisons read."""

ROWS_VERSION = 1
"""Incremented when a column changes its meaning or is removed, but not when a column is added."""

VERSION_KEY = "evaltrack.rows"
"""The metadata key of the version."""


@cache
def file_schema(own: tuple[str, ...] = ()) -> pa.Schema:
    """Return the Arrow schema of a file: the columns, those for comparisons, and the version."""
    import pyarrow as pa

    types = {"number": pa.float64(), "integer": pa.int64(), "boolean": pa.bool_()}
    columns = {column.name: types.get(column.type, pa.string()) for column in (*columns_with(own), *COMPARED)}
    return pa.schema(columns, metadata={VERSION_KEY: str(ROWS_VERSION)})


def columns_of(row: StoredRow) -> dict[str, Any]:
    """Return the row by column, in order. Lists are lists, objects are dictionaries, and unmeasured values are None."""
    fields, scores = adapter().dump_python(row, mode="json", exclude={"scores", "own"}), row.scores
    return {each.name: fields.get(each.name, scores.get(each.name)) for each in columns_with(row.own)}


def file_columns(row: StoredRow) -> dict[str, Any]:
    """Return the row as its file holds it."""
    columns = {name: getattr(row, name) for name in FIELDS} | dict(row.scores) | compared_columns(row)
    return columns | {name: _json_text(columns[name]) for name in json_names()}


def _json_text(value: object) -> str | None:
    return None if value is None else to_json(value, exclude_none=True).decode()


CURE = "restore the file, or evaluate again"


class DamagedError(Exception):
    """The rows are not those of an evaluation. The message says what is wrong."""


class RowsError(TrackingError):
    """A file of rows cannot be used. `name` is the file's name, `problem` a predicate."""

    def __init__(self, name: str, problem: str, cure: str = CURE, run_id: str | None = None) -> None:
        self.name, self.problem, self.cure = name, problem, cure
        super().__init__(f"{name}{f' of run {run_id}' if run_id else ''} {problem}; {cure}")


def value_problem(error: ValidationError) -> str:
    """Return the first column of a row that cannot be read, and why."""
    first = error.errors(include_url=False)[0]
    return f"column `{'.'.join(map(str, first['loc']))}`: {first['msg']}"


@contextmanager
def rows_of_run(run_id: str | None) -> Iterator[None]:
    """Add the run's id to errors about rows that are read in this context."""
    try:
        yield
    except RowsError as error:
        raise RowsError(error.name, error.problem, error.cure, run_id) from None


def damaged(name: str, what: str) -> RowsError:
    """Return the error for a file that is damaged, or was written by another program."""
    return RowsError(name, f"is damaged, or was not written by evaltrack: {what}")


def newer(name: str, version: int, run_id: str | None = None) -> RowsError:
    """Return the error for a file that a later version wrote."""
    own = f"rows of version {version}, and this one reads version {ROWS_VERSION}"
    return RowsError(name, f"was written by a newer version of evaltrack ({own})", "upgrade evaltrack", run_id)


BATCH = 2000
"""Rows that are written to Parquet at a time; fewer if texts are long."""

GROUP_BYTES = 1 << 25
"""The most characters of texts that are written at a time."""

WINDOW = 5000
"""The most finished rows that are held back to keep the order of the golden set."""

WINDOW_BYTES = 1 << 27
"""The most characters of rows that are held back. A slow question must not gather gigabytes of other answers."""


class TableWriter:
    """Streams rows into a Parquet file, in the order of the golden set.

    There is one row per question; with `trials` one per trial of it. `own` names the user's own scores.

    A row that finished before its predecessors waits for them, up to `WINDOW` rows and `WINDOW_BYTES`. Beyond that,
    rows are written out of order to save memory; `position` has the order.
    """

    def __init__(self, path: Path, k: int, trials: int = 0, own: tuple[str, ...] = ()) -> None:
        import pyarrow.parquet as pq

        self._schema = file_schema(own)
        others = [column.name for column in columns_with(own) if not column.is_json]
        packing: dict[str, Any] = {"compression": "zstd", "compression_level": 9, "use_dictionary": others}
        self._writer = pq.ParquetWriter(path, self._schema, data_page_size=GROUP_BYTES, **packing)
        self._k, self._trials, self._own = k, trials, own
        self._next = (0, 1)
        self._added = 0
        self._waiting: list[tuple[tuple[int, int], int, int, bool, dict[str, Any]]] = []
        self._held = 0
        self._batch: list[dict[str, Any]] = []
        self._characters = 0
        self.rows = 0

    def add(self, row: Row) -> None:
        """Add one row. It is written to the file with its batch."""
        self._added += 1
        trial = row.trial or 1
        is_last = trial >= self._trials
        columns = file_columns(stored_row(row, self._k, self._own))
        size = sum(len(value) for value in columns.values() if isinstance(value, str))
        place = (row.position, trial if self._trials else 1)
        heapq.heappush(self._waiting, (place, self._added, size, is_last, columns))
        self._held += size
        while self._waiting and (
            self._waiting[0][0] <= self._next or len(self._waiting) > WINDOW or self._held > WINDOW_BYTES
        ):
            self._release()

    def close(self) -> None:
        """Write the waiting rows, and close the file."""
        while self._waiting:
            self._release()
        self._flush()
        self._writer.close()

    def _release(self) -> None:
        (position, trial), _, size, is_last, columns = heapq.heappop(self._waiting)
        self._held -= size
        self._next = (position + 1, 1) if is_last else (position, trial + 1)
        self._batch.append(columns)
        self._characters += size
        self.rows += 1
        if len(self._batch) >= BATCH or self._characters >= GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        if self._batch:
            self._writer.write_table(pa.Table.from_pylist(self._batch, schema=self._schema))
            self._batch, self._characters = [], 0


SHOWN = 3
"""The most rows that a message names."""


def id_words(ids: Sequence[str]) -> str:
    """Format the first ids for a message."""
    texts = (text if text.isprintable() else repr(text) for text in ids[:SHOWN])
    return ", ".join(f"`{text:.40}`" for text in texts) + (", ..." if len(ids) > SHOWN else "")
