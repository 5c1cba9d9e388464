"""Writes and reads a run's result rows as a Parquet table; columns and checks come from the fields of `Row`.

Ids are strings. A value that was not measured is null, and the reason is in `unmeasured` or `error`. Lists and objects
are JSON texts.

A file that is read may be anybody's, and a small one can hold gigabytes. So pyarrow's metadata is checked first. Then
one row group is read at a time, with its texts as dictionaries (a repeated text is held once). It is measured before it
is decoded.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from sys import float_info
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError
from pydantic_core import from_json, to_json

from evaltrack.errors import TrackingError
from evaltrack.metrics.catalogue import SCORES
from evaltrack.records.base import count
from evaltrack.records.row import (
    FIELDS,
    LARGEST_COUNT,
    NUM_EXPECTED,
    PRINTS,
    Row,
    compared_columns,
)
from evaltrack.records.verdict import LARGEST_SCORE, MOST_SCORES, NAME_PATTERN

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
    fields = [_column(name, schema) for name, schema in Row.model_json_schema()["properties"].items() if name in FIELDS]
    place = [column.name for column in fields].index("unmeasured")
    ours = (Column(each.name, "number", high=float_info.max if each.span is None else each.span) for each in SCORES)
    others = (Column(name, "number", low=-LARGEST_SCORE, high=LARGEST_SCORE) for name in own)
    return (*fields[:place], *ours, *others, *fields[place:])


def _column(name: str, schema: Mapping[str, Any]) -> Column:
    value, *null = schema.get("anyOf", [schema])
    bounds = {side: value[word] for side, word in (("low", "minimum"), ("high", "maximum")) if word in value}
    choices = tuple(value.get("enum", ()))
    kind = value.get("type", "object")  # a record is a reference
    required = not null and kind not in ("array", "object")
    return Column(name, kind, required, **bounds, choices=choices)


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


def columns_of(row: Row, own: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return the row by column, in order. Lists are lists, objects are dictionaries, and unmeasured values are None."""
    fields, scores = row.model_dump(mode="json", exclude={"scores"}), row.scores
    return {each.name: fields.get(each.name, scores.get(each.name)) for each in columns_with(own)}


def file_columns(row: Row) -> dict[str, Any]:
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
    column = ".".join(map(str, first["loc"]))
    return f"column `{column}`: {first['msg']}" if column else first["msg"]


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


BATCH = 2000
"""Rows that are written to Parquet at a time; fewer if texts are long."""

GROUP_BYTES = 1 << 25
"""The most characters of rows that are held back. A slow question must not gather gigabytes of other answers."""


class TableWriter:
    """Streams rows into a Parquet file, in the order of the golden set. `own` names the user's own scores.

    Twice a `BATCH` of finished rows is sorted, and its first half is written. So a row that more than a batch of others
    overtake is written out of order; `position` has the order.
    """

    def __init__(self, path: Path, own: tuple[str, ...] = ()) -> None:
        import pyarrow.parquet as pq

        self._schema = file_schema(own)
        others = [column.name for column in columns_with(own) if not column.is_json]
        packing: dict[str, Any] = {"compression": "zstd", "compression_level": 9, "use_dictionary": others}
        self._writer = pq.ParquetWriter(path, self._schema, data_page_size=GROUP_BYTES, **packing)
        self._waiting: list[dict[str, Any]] = []
        self._characters = 0
        self.rows = 0

    def add(self, row: Row) -> None:
        """Add a finished question, or one trial of it."""
        columns = file_columns(row)
        self._waiting.append(columns)
        self._characters += _characters(columns)
        self.rows += 1
        if len(self._waiting) == 2 * BATCH or self._characters > GROUP_BYTES:
            self._write((len(self._waiting) + 1) // 2)

    def close(self) -> None:
        """Write the waiting rows, and close the file."""
        while self._waiting:
            self._write(BATCH)
        self._writer.close()

    def _write(self, number: int) -> None:
        import pyarrow as pa

        self._waiting.sort(key=lambda columns: (columns["position"], columns["trial"] or 0))
        first, self._waiting = self._waiting[:number], self._waiting[number:]
        self._characters -= sum(map(_characters, first))
        self._writer.write_table(pa.Table.from_pylist(first, schema=self._schema))


def _characters(columns: Mapping[str, Any]) -> int:
    return sum(len(value) for value in columns.values() if isinstance(value, str))


SHOWN = 3
"""The most rows that a message names."""


def id_words(ids: Sequence[str]) -> str:
    """Format the first ids for a message."""
    texts = (text if text.isprintable() else repr(text) for text in ids[:SHOWN])
    return ", ".join(f"`{text:.40}`" for text in texts) + (", ..." if len(ids) > SHOWN else "")


FILE_BYTES = 1 << 32
MAX_ROWS = 20_000_000
GROUP_ROWS = 50_000
"""The most rows of one row group. The writer's have 2,000."""


LIMIT = 4 * GROUP_BYTES
"""The most bytes of one row group, by its metadata and when read."""

PYTHON_ROWS = 200
"""Rows converted to Python objects at a time."""


class RowsFile:
    """An open Parquet file of rows. `own` names the user's own scores.

    Raises:
        RowsError: it is damaged, of a newer version, or of other types than `schema`.
    """

    def __init__(self, path: Path) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        self._path = path
        with _file_errors(path):
            if path.stat().st_size > FILE_BYTES:
                raise DamagedError(f"it has {count(path.stat().st_size, 'byte')}")
            try:
                metadata = pq.read_metadata(path)
            except pa.ArrowInvalid:
                raise DamagedError("it is not a Parquet file") from None
            self._schema = metadata.schema.to_arrow_schema()
            self.own = _check_schema(path, self._schema)
            self._groups = [metadata.row_group(place) for place in range(metadata.num_row_groups)]
            if metadata.num_rows > MAX_ROWS or any(not 0 <= group.num_rows <= GROUP_ROWS for group in self._groups):
                raise DamagedError(f"it claims {count(metadata.num_rows, 'row')} in {count(len(self._groups), 'part')}")
            texts = [field.name for field in self._schema if field.type == pa.string()]
            self._file = pq.ParquetFile(path, metadata=metadata, read_dictionary=texts)
        self.names = self._schema.names
        self.num_rows = int(metadata.num_rows)

    def __enter__(self) -> RowsFile:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._file.close()

    def groups(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the row groups, with those of `columns` that the file has."""
        for number in range(len(self._groups)):
            yield self.group(number, columns)
        if not self._groups:
            yield file_schema(self.own).empty_table().select(self._known(columns))

    def _known(self, columns: Sequence[str] | None) -> list[str]:
        every = [column.name for column in columns_with(self.own)]
        return [name for name in columns or every if name in self.names]

    def group(self, number: int, columns: Sequence[str] | None = None, mask: pa.Array | None = None) -> pa.Table:
        """Return one row group, or its rows in the mask, checked."""
        import pyarrow as pa

        names = self._known(columns)
        with _file_errors(self._path):
            self._check_size(number, names)
            table = self._file.read_row_group(number, columns=names, use_threads=False)
            size = sum(_decoded_size(chunk) for column in table.columns for chunk in column.chunks)
            if size > LIMIT:
                raise DamagedError(f"{table.num_rows:,} of its rows hold {count(size, 'byte')}")
            table = table if mask is None else table.filter(mask)
            table = table.cast(pa.schema([file_schema(self.own).field(name) for name in table.column_names]))
            table.validate(full=True)  # finds texts that are not UTF-8
            check_values(table, self.own)
        return table

    def _check_size(self, number: int, names: Collection[str]) -> None:
        group = self._groups[number]
        columns = [group.column(place) for place in range(group.num_columns)]
        columns = [column for column in columns if column.path_in_schema in names]
        size = sum(column.total_uncompressed_size for column in columns)
        values = max((column.num_values for column in columns), default=0)
        if size > LIMIT or values > GROUP_ROWS:
            raise DamagedError(
                f"{group.num_rows:,} of its rows claim {count(size, 'byte')} and {count(values, 'value')}"
            )


def _decoded_size(array: pa.Array) -> int:
    """Return the bytes of an array with each repeated text written out."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_dictionary(array.type):
        return int(array.nbytes)
    lengths = pc.cast(pc.binary_length(array.dictionary), pa.int64())
    return pc.sum(lengths.take(array.indices)).as_py() or 0


@contextmanager
def _file_errors(path: Path) -> Iterator[None]:
    """Turn errors in a file into a `RowsError`."""
    import pyarrow as pa

    try:
        yield
    except DamagedError as error:
        raise damaged(path.name, str(error)) from None
    except ValidationError as error:
        raise damaged(path.name, value_problem(error)) from None
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        raise damaged(path.name, type(error).__name__) from None


def _check_schema(path: Path, actual: pa.Schema) -> tuple[str, ...]:
    """Check version and types, and return the names of the user's own scores. Other unknown columns are ignored."""
    import pyarrow as pa

    version = (actual.metadata or {}).get(VERSION_KEY.encode(), b"1")
    if not version.isdigit() or len(version) > 9:
        raise DamagedError(f"its metadata `{VERSION_KEY}` holds no version")
    if int(version) > ROWS_VERSION:
        own = f"rows of version {int(version)}, and this one reads version {ROWS_VERSION}"
        raise RowsError(path.name, f"was written by a newer version of evaltrack ({own})", "upgrade evaltrack")
    if len(set(actual.names)) < len(actual.names):
        raise DamagedError("two of its columns have one name")
    if "id" not in actual.names:
        raise DamagedError("it has no column `id`")
    for field in file_schema():
        if field.name in actual.names and (kind := actual.field(field.name).type) != field.type:
            hint = "; ids are text, as `5` and `05` differ" if field.name == "id" else ""
            raise DamagedError(f"column `{field.name}` holds {kind!s:.40}, not {field.type}{hint}")
    others = [each.name for each in actual if each.name not in file_schema().names and each.type == pa.float64()]
    return tuple(name for name in others if re.match(NAME_PATTERN, name))[:MOST_SCORES]


ROUNDING = 1e-9
"""The tolerance of a computed score outside its range."""


def check_values(table: pa.Table, own: tuple[str, ...] = ()) -> None:
    """Raise for values that no evaluation can hold, in the columns that were read. JSON texts are checked later.

    Raises:
        DamagedError: a value is missing, not finite, out of range, or not an allowed choice.
    """
    import pyarrow.compute as pc

    for column in (each for each in (*columns_with(own), *COMPARED) if each.name in table.column_names):
        name, values = column.name, table[column.name]
        is_empty = column.type == "string" and pc.any(pc.equal(values, "")).as_py()
        if column.required and (values.null_count or is_empty):
            raise DamagedError(f"column `{name}` is empty in some rows")
        if (wrong := _wrong(column, values)) is None or not pc.any(wrong).as_py():
            continue
        value = values.filter(wrong)[0].as_py()
        value_text = f"`{value:.40}`" if isinstance(value, str) else f"{value:g}"
        place = f" in row {id_words(table['id'].filter(wrong).to_pylist())}" if "id" in table.column_names else ""
        raise DamagedError(f"column `{name}` holds {value_text}{place}")


def _wrong(column: Column, values: pa.ChunkedArray) -> Any:
    """Return a mask of the values that the column cannot hold; None if it can hold any."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if column.choices:
        sound = pc.is_in(values, pa.array(column.choices))
    elif column.type in ("number", "integer"):
        rounding = ROUNDING if column.type == "number" else 0
        sound = pc.and_(pc.greater_equal(values, column.low - rounding), pc.less_equal(values, column.high + rounding))
    elif column.is_json:
        sound = pc.less_equal(pc.binary_length(values), GROUP_BYTES)
    else:
        return None
    return pc.and_(pc.is_valid(values), pc.invert(sound))


def check_rows(path: Path, num_rows: int = 0, needed: Iterable[str] = ()) -> None:
    """Check a file as a whole: its version and types, the number of rows, and that no id is repeated.

    Values are checked when they are read. `num_rows` is the number of questions that the run reports, 0 if it reports
    none. `needed` names required columns.

    Raises:
        TrackingError: the file is damaged, or of a newer version. The message says what is wrong.
    """
    import pyarrow as pa

    with RowsFile(path) as file, _file_errors(path):
        needed = [*(column.name for column in columns_with() if column.required), *needed]
        if missing := [name for name in needed if name not in file.names]:
            raise DamagedError(f"it has no column `{missing[0]}`")
        if num_rows and file.num_rows != num_rows:
            held, asked = count(file.num_rows, "row"), count(num_rows, "question")
            raise DamagedError(f"it holds {held}, and the run says that it asked {asked}")
        keys = pa.concat_tables(file.groups(["id"])).to_pandas()
        if (repeated := keys.duplicated()).any():
            raise DamagedError(f"several rows have one id: {id_words([*dict.fromkeys(keys['id'][repeated])])}")


def stored_rows(path: Path, columns: Sequence[str] | None = None, ids: Collection[str] | None = None) -> Iterator[Row]:
    """Yield the rows of a file with their types, streamed. `columns` must include `id`; `ids` selects rows.

    Raises:
        TrackingError: the file is damaged, or holds more than an evaluation can.
    """
    with RowsFile(path) as file, _file_errors(path):
        names = json_names()
        for group in file.groups(columns) if ids is None else _groups_with(file, columns, ids):
            for row in _dictionaries(group):
                held = {name: _parsed(name, row[name]) for name in names if row.get(name) is not None}
                yield Row.of(row | held)


def _parsed(name: str, text: str) -> Any:
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError:
        raise DamagedError(f"column `{name}` holds a text that is not JSON") from None


def read_table(path: Path, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file as dictionaries of columns, streamed. `columns` selects columns without JSON texts.

    With all columns, a column that the file lacks is null in every row.

    Raises:
        TrackingError: the file is damaged, or holds more than an evaluation can.
    """
    if columns is None:
        with RowsFile(path) as file:
            own = file.own
        yield from (columns_of(row, own) for row in stored_rows(path))
        return
    for group in read_groups(path, columns):
        yield from _dictionaries(group)


def _dictionaries(group: pa.Table) -> Iterator[dict[str, Any]]:
    for start in range(0, group.num_rows, PYTHON_ROWS):
        yield from group.slice(start, PYTHON_ROWS).to_pylist()


def _groups_with(file: RowsFile, columns: Sequence[str] | None, ids: Collection[str]) -> Iterator[pa.Table]:
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = pa.array(list(ids), pa.string())
    for number, keys in enumerate(file.groups(["id"])):
        mask = pc.is_in(keys["id"], wanted)
        if pc.any(mask).as_py():
            yield file.group(number, columns, mask)


def read_groups(path: Path, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the row groups with those of the columns that the file has. Raises as `read_table` does."""
    with RowsFile(path) as file:
        yield from file.groups(columns)
