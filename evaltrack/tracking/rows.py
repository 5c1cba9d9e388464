"""Writes a run's result rows as a Parquet table, whose columns and value checks come from the fields of `StoredRow`.

Ids are strings. A value that was not measured is null, and the reason is in `unmeasured` or `error`.
"""

from __future__ import annotations

import heapq
import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

from pydantic.fields import FieldInfo

from evaltrack.errors import TrackingError
from evaltrack.metrics.catalogue import SCORES
from evaltrack.records import Row, Verdict
from evaltrack.records.stored_row import (
    FIELDS,
    LARGEST_COUNT,
    LARGEST_NUMBER,
    NUM_EXPECTED,
    PRINTS,
    USAGE_PARTS,
    StoredRow,
    compared_columns,
    stored_row,
    verdict_columns,
)
from evaltrack.records.verdict import LARGEST_SCORE

if TYPE_CHECKING:
    import pyarrow as pa

ColumnType = Literal["text", "texts", "number", "integer", "flag", "objects"]
TYPES: Mapping[object, ColumnType] = {str: "text", float: "number", int: "integer", bool: "flag"}


@dataclass(frozen=True)
class Column:
    """One column, or one field of the objects in a column. `texts` and `objects` are lists.

    Args:
        name: Name in the file.
        type: Type of its values.
        required: True if no file of evaltrack has null there.
        bounds: Least and largest number.
        choices: The allowed texts; empty if any is allowed.
        fields: The fields of `objects`.
    """

    name: str
    type: ColumnType
    required: bool = False
    bounds: tuple[float, float] = (0, LARGEST_COUNT)
    choices: tuple[str, ...] = ()
    fields: tuple[Column, ...] = ()


def _columns_of(record: Any) -> Iterator[Column]:
    """Yield the columns of a record. The usage of a verdict is flat."""
    hints = get_type_hints(record, include_extras=True)
    for name in getattr(record, "model_fields", None) or record.__dataclass_fields__:
        if name == "usage":
            yield from (Column(part, "integer") for part in USAGE_PARTS)
        elif name not in ("scores", "own"):
            yield _column(name, hints[name])


def _column(name: str, hint: Any) -> Column:
    required = type(None) not in get_args(hint)
    kind, *notes = _plain(hint if required else get_args(hint)[0])
    if get_origin(kind) is tuple:
        item, *_ = _plain(get_args(kind)[0])
        nested = () if item is str else tuple(_columns_of(item))
        return Column(name, "objects" if nested else "texts", fields=nested)
    choices = get_args(kind)
    bounds = [bound for note in notes if isinstance(note, FieldInfo) for bound in note.metadata]
    sides = zip(("ge", "le"), Column.bounds, strict=True)
    low, high = (next((getattr(each, side) for each in bounds if hasattr(each, side)), end) for side, end in sides)
    return Column(name, "text" if choices else TYPES.get(kind, "text"), required, (low, high), choices)


def _plain(hint: Any) -> tuple[Any, ...]:
    """Return a type and its annotations."""
    return get_args(hint) if get_origin(hint) is Annotated else (hint,)


def _score(name: str, span: float | None) -> Column:
    largest = LARGEST_NUMBER if name == "combined_score" else LARGEST_COUNT if span is None else span
    return Column(name, "number", bounds=(0, largest))


_FIELDS = tuple(_columns_of(StoredRow))


@cache
def columns_with(own: tuple[str, ...] = ()) -> tuple[Column, ...]:
    """Return the columns of a run in the order for readers. `own` names the user's own scores."""
    place = [column.name for column in _FIELDS].index("unmeasured")
    ours = (_score(score.name, score.span) for score in SCORES)
    others = (Column(name, "number", bounds=(-LARGEST_SCORE, LARGEST_SCORE)) for name in own)
    return (*_FIELDS[:place], *ours, *others, *_FIELDS[place:])


COLUMNS = columns_with()
SOURCE_FIELDS = tuple(each.name for column in COLUMNS if column.name == "sources" for each in column.fields)


def names_to_read(own: tuple[str, ...], source_fields: Iterable[str], without: Collection[str] = ()) -> list[str]:
    """Return the names of all columns except those in `without`, and of these fields of the sources."""
    names = [column.name for column in columns_with(own) if column.name not in (*without, "sources")]
    return [*names, *(f"sources.list.element.{name}" for name in source_fields)]


COMPARED = (
    *(Column(name, "integer", bounds=(-(1 << 63), (1 << 63) - 1)) for name in PRINTS),
    Column(NUM_EXPECTED, "integer"),
)
"""Columns of the file that only comparisons read."""

OBJECTS = ("unmeasured", "score_reasoning")
"""Text columns with a JSON object from names of scores to texts."""

ROWS_VERSION = 1
"""Incremented when a column changes its meaning or is removed, but not when a column is added."""

OWN_KEY = "evaltrack.own_scores"
"""The metadata key of the names of the user's own scores: a JSON list. Files without own scores lack it."""

VERSION_KEY = "evaltrack.rows"
"""The metadata key of the version."""


@cache
def schema(own: tuple[str, ...] = ()) -> pa.Schema:
    """Return the Arrow schema of the columns, with the user's own scores."""
    import pyarrow as pa

    return pa.schema({column.name: _arrow_type(column) for column in columns_with(own)})


@cache
def file_schema(own: tuple[str, ...] = ()) -> pa.Schema:
    """Return the schema of a file: `schema`, the columns for comparisons, and the version."""
    import pyarrow as pa

    compared = pa.schema({column.name: _arrow_type(column) for column in COMPARED})
    metadata = {VERSION_KEY: str(ROWS_VERSION)} | ({OWN_KEY: json.dumps(own)} if own else {})
    return pa.unify_schemas([schema(own), compared]).with_metadata(metadata)


def _arrow_type(column: Column) -> pa.DataType:
    import pyarrow as pa

    if column.type == "objects":
        return pa.list_(pa.struct({each.name: _arrow_type(each) for each in column.fields}))
    types = {"text": pa.string(), "number": pa.float64(), "integer": pa.int64(), "flag": pa.bool_()}
    return pa.list_(pa.string()) if column.type == "texts" else types[column.type]


def columns_of(row: StoredRow) -> dict[str, Any]:
    """Return the row by column, in order. Lists are lists, objects are dictionaries, and unmeasured values are None."""
    return {column.name: value_in(column, row) for column in columns_with(row.own)}


def value_in(column: Column, row: StoredRow) -> Any:
    """Return the value of a row in a column."""
    value: Any = getattr(row, column.name) if column.name in FIELDS else row.scores.get(column.name)
    if column.type not in ("texts", "objects") or value is None:
        return value
    if not value and (column.name == "history" or (column.name == "hard_fails" and row.mode is None)):
        return None
    return [_object(each, column.fields) for each in value] if column.fields else list(value)


def _object(part: Any, columns: tuple[Column, ...]) -> dict[str, Any]:
    if isinstance(part, Verdict):
        return verdict_columns(part)
    values = {column.name: getattr(part, column.name) for column in columns}
    return values | {"finds": list(part.finds) or None} if "finds" in values else values


CURE = "restore the file, or evaluate again"


class DamagedError(Exception):
    """The rows are not those of an evaluation. The message says what is wrong."""


class RowsError(TrackingError):
    """A file of rows cannot be used. `name` is the file's name, `problem` a predicate."""

    def __init__(self, name: str, problem: str, cure: str = CURE, run_id: str | None = None) -> None:
        self.name, self.problem, self.cure = name, problem, cure
        super().__init__(f"{name}{f' of run {run_id}' if run_id else ''} {problem}; {cure}")


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

ROW_SIZE = 500
"""The size of a source, and of a row, without its texts, in characters."""


class TableWriter:
    """Streams rows into a Parquet file, in the order of the golden set.

    There is one row per question; with `trials` one per trial of it. `own` names the user's own scores.

    A row that finished before its predecessors waits for them, up to `WINDOW` rows and `WINDOW_BYTES`. Beyond that,
    rows are written out of order to save memory; `position` has the order.
    """

    def __init__(self, path: Path, k: int, trials: int = 0, own: tuple[str, ...] = ()) -> None:
        import pyarrow.parquet as pq

        self._schema = file_schema(own)
        self._writer = pq.ParquetWriter(path, self._schema, compression="zstd")
        self._k, self._trials, self._own = k, trials, own
        self._next = (0, 1)
        self._added = 0
        self._waiting: list[tuple[tuple[int, int], int, int, bool, StoredRow]] = []
        self._held = 0
        self._batch: list[dict[str, Any]] = []
        self._characters = 0
        self.rows = 0

    def add(self, row: Row) -> None:
        """Add one row. It is written to the file with its batch."""
        self._added += 1
        trial = row.trial or 1
        is_last = trial >= self._trials
        stored = stored_row(row, self._k, self._own)
        size = _characters(stored)
        place = (row.position, trial if self._trials else 1)
        heapq.heappush(self._waiting, (place, self._added, size, is_last, stored))
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
        (position, trial), _, size, is_last, row = heapq.heappop(self._waiting)
        self._held -= size
        self._next = (position + 1, 1) if is_last else (position, trial + 1)
        self._batch.append(columns_of(row) | compared_columns(row))
        self._characters += size
        self.rows += 1
        if len(self._batch) >= BATCH or self._characters >= GROUP_BYTES:
            self._flush()

    def _flush(self) -> None:
        import pyarrow as pa

        if self._batch:
            self._writer.write_table(pa.Table.from_pylist(self._batch, schema=self._schema))
            self._batch, self._characters = [], 0


def _characters(row: StoredRow) -> int:
    """Return the approximate size of a row's texts, in characters."""
    texts = [row.question, row.answer, row.expected_answer, row.traceback, *(turn.content for turn in row.history)]
    texts += [text for source in row.sources or () for text in (source.text, source.title)]
    texts += [text for verdict in row.verdicts for text in (verdict.reasoning, str(verdict.observed or ""))]
    return ROW_SIZE * (1 + len(row.sources or ())) + sum(map(len, filter(None, texts)))


ROUNDING = 1e-9
"""The tolerance of a computed score outside its range."""

BY_PATH = {column.name: column for column in (*COLUMNS, *COMPARED)}
BY_PATH |= {f"{column.name}.{each.name}": each for column in COLUMNS for each in column.fields}

SHOWN = 3
"""The most rows that a message names."""


def check_values(table: pa.Table) -> None:
    """Raise for values that no evaluation can hold, in the columns that were read.

    Raises:
        DamagedError: a value is missing, not finite, out of range, or not an allowed choice.
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
            raise DamagedError(f"a list in column `{name}` holds an empty value")
        _check_array(name, array.flatten(), table)
    elif pa.types.is_struct(array.type):
        for index, child in enumerate(array.flatten()):
            _check_array(f"{name}.{array.type.field(index).name}", child, table)
    elif pa.types.is_floating(array.type) or pa.types.is_integer(array.type):
        low, high = BY_PATH[name].bounds if name in BY_PATH else (-LARGEST_SCORE, LARGEST_SCORE)  # a user's own score
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
    place = f" in row {id_words(table['id'].filter(wrong).to_pylist())}" if in_rows else ""
    raise DamagedError(f"column `{name}` holds {value_text}{place}")


def _check_objects(name: str, column: pa.ChunkedArray) -> None:
    """Check that each text is a JSON object."""
    for text in column.unique().drop_null().to_pylist():
        try:
            sound = isinstance(json.loads(text), dict)
        except (ValueError, RecursionError):
            sound = False
        if not sound:
            raise DamagedError(f"column `{name}` holds a text that is not a JSON object")


def id_words(ids: Sequence[str]) -> str:
    """Format the first ids for a message."""
    texts = (text if text.isprintable() else repr(text) for text in ids[:SHOWN])
    return ", ".join(f"`{text:.40}`" for text in texts) + (", ..." if len(ids) > SHOWN else "")
