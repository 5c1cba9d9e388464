"""Reads result rows from an untrusted Parquet file, with limits on bytes, rows and values.

A small file can hold gigabytes. So pyarrow's metadata is checked first. Then one row group is read at a time, with its
texts as dictionaries (a repeated text is held once). It is measured before it is decoded.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from evaltrack.records.amount import count
from evaltrack.records.stored_row import StoredRow
from evaltrack.records.verdict import MOST_SCORES, NAME_PATTERN
from evaltrack.system.parquet import claimed_sizes, decoded_size, read_metadata, text_columns
from evaltrack.tracking.rows import (
    COLUMNS,
    GROUP_BYTES,
    OWN_KEY,
    ROWS_VERSION,
    SOURCE_FIELDS,
    VERSION_KEY,
    DamagedError,
    check_values,
    damaged,
    file_schema,
    id_words,
    names_to_read,
    newer,
    schema,
)

if TYPE_CHECKING:
    import pyarrow as pa

FILE_BYTES = 1 << 32
MAX_ROWS = 20_000_000
GROUP_ROWS = 50_000
"""The most rows of one row group. The writer's have 2,000."""

GROUP_VALUES = 5_000_000
"""The most values of one column in one row group, including those in lists."""

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
                metadata = read_metadata(path)
            except pa.ArrowInvalid:
                raise DamagedError("it is not a Parquet file") from None
            self._schema = metadata.schema.to_arrow_schema()
            self.own = _check_schema(path, self._schema)
            self._groups = [metadata.row_group(place) for place in range(metadata.num_row_groups)]
            if metadata.num_rows > MAX_ROWS or any(not 0 <= group.num_rows <= GROUP_ROWS for group in self._groups):
                raise DamagedError(f"it claims {count(metadata.num_rows, 'row')} in {count(len(self._groups), 'part')}")
            self._file = pq.ParquetFile(path, metadata=metadata, read_dictionary=text_columns(metadata))
        self.names = self._schema.names
        self.num_rows = int(metadata.num_rows)

    def __enter__(self) -> RowsFile:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._file.close()

    def groups(self, columns: Sequence[str] | None = None) -> Iterator[pa.Table]:
        """Yield the row groups, with those of `columns` that the file has. Single fields of objects can be named."""
        for number in range(len(self._groups)):
            yield self.group(number, columns)
        if not self._groups:
            fields, names = schema(self.own), {column.partition(".")[0] for column in columns or self.names}
            yield fields.empty_table().select([name for name in fields.names if name in names & set(self.names)])

    def group(self, number: int, columns: Sequence[str] | None = None) -> pa.Table:
        """Return one row group, checked."""
        import pyarrow as pa

        names = [name for name in columns or schema(self.own).names if name.partition(".")[0] in self.names]
        with _file_errors(self._path):
            self._check_size(number, names)
            table = self._file.read_row_group(number, columns=names, use_threads=False)
            size = sum(decoded_size(chunk) for column in table.columns for chunk in column.chunks)
            if size > LIMIT:
                raise DamagedError(f"{table.num_rows:,} of its rows hold {count(size, 'byte')}")
            table = table.cast(pa.schema({field.name: _decoded(field.type) for field in table.schema}))
            table.validate(full=True)  # finds texts that are not UTF-8
            try:
                check_values(table)
            except DamagedError:
                if "id" not in names:  # the error names rows by id
                    self.group(number, [*names, "id"])
                raise
        return table

    def _check_size(self, number: int, names: Collection[str]) -> None:
        group = self._groups[number]
        sizes = claimed_sizes(group, tuple(names))
        size, values = sum(size for size, _ in sizes), max((values for _, values in sizes), default=0)
        if size > LIMIT or values > GROUP_VALUES:
            raise DamagedError(
                f"{group.num_rows:,} of its rows claim {count(size, 'byte')} and {count(values, 'value')}"
            )


@contextmanager
def _file_errors(path: Path) -> Iterator[None]:
    """Turn errors in a file into a `RowsError`."""
    import pyarrow as pa

    try:
        yield
    except DamagedError as error:
        raise damaged(path.name, str(error)) from None
    except ValidationError as error:
        place = ".".join(map(str, error.errors()[0]["loc"]))
        raise damaged(path.name, f"column `{place}` holds an empty value") from None
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        raise damaged(path.name, type(error).__name__) from None


def _decoded(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_list(kind):
        return pa.list_(_decoded(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct({field.name: _decoded(field.type) for field in kind})
    return kind


def _check_schema(path: Path, actual: pa.Schema) -> tuple[str, ...]:
    """Check version and types, and return the names of the user's own scores. Unknown columns are ignored."""
    metadata = actual.metadata or {}
    version = metadata.get(VERSION_KEY.encode(), b"1")
    if not version.isdigit() or len(version) > 9:
        raise DamagedError(f"its metadata `{VERSION_KEY}` holds no version")
    if int(version) > ROWS_VERSION:
        raise newer(path.name, int(version))
    if len(set(actual.names)) < len(actual.names):
        raise DamagedError("two of its columns have one name")
    if "id" not in actual.names:
        raise DamagedError("it has no column `id`")
    own = _own_scores(metadata.get(OWN_KEY.encode(), b"[]"), actual)
    for field in file_schema(own):
        if field.name in actual.names:
            _check_type(field.name, actual.field(field.name).type, field.type)
    return own


def _own_scores(text: bytes, actual: pa.Schema) -> tuple[str, ...]:
    try:
        names = json.loads(text)
    except (ValueError, RecursionError):
        names = None
    sound = isinstance(names, list) and len(names) <= MOST_SCORES
    if not sound or not all(isinstance(name, str) and re.match(NAME_PATTERN, name) for name in names):
        raise DamagedError(f"its metadata `{OWN_KEY}` holds no names of scores")
    if missing := [name for name in names if name not in actual.names]:
        raise DamagedError(f"it has no column `{missing[0]}`")
    return tuple(name for name in dict.fromkeys(names) if name not in schema().names)


def _check_type(path: str, actual: pa.DataType, expected: pa.DataType) -> None:
    """Check a type. A struct may lack fields, and may have others."""
    import pyarrow as pa

    if pa.types.is_list(expected) and pa.types.is_list(actual):
        _check_type(path, actual.value_type, expected.value_type)
    elif pa.types.is_struct(expected) and pa.types.is_struct(actual):
        known = {field.name: field.type for field in expected}
        for field in actual:
            if field.name in known:
                _check_type(f"{path}.{field.name}", field.type, known[field.name])
    elif actual != expected:
        hint = "; ids are text, as `5` and `05` differ" if path == "id" else ""
        raise DamagedError(f"column `{path}` holds {_type_words(actual)}, not {_type_words(expected)}{hint}")


def _type_words(kind: pa.DataType) -> str:
    import pyarrow as pa

    if pa.types.is_struct(kind):
        return "objects"
    return "lists" if pa.types.is_list(kind) else f"{kind!s:.40}"


def count_rows(path: Path) -> int:
    """Return the number of rows in a file, from its metadata.

    Raises:
        TrackingError: the file is damaged, or larger than an evaluation can be.
    """
    with RowsFile(path) as file:
        return file.num_rows


def check_rows(path: Path, num_rows: int = 0, needed: Iterable[str] = (), *, by_trial: bool = False) -> None:
    """Check a file as a whole: its version and types, the number of rows, and that no id is repeated.

    Values are checked when they are read. `num_rows` is the number of questions that the run reports, 0 if it reports
    none. `needed` names required columns. With `by_trial` there is one row per trial of a question.

    Raises:
        TrackingError: the file is damaged, or of a newer version. The message says what is wrong.
    """
    import pyarrow as pa

    with RowsFile(path) as file, _file_errors(path):
        needed = [*(column.name for column in COLUMNS if column.required), *needed]
        if missing := [name for name in needed if name not in file.names]:
            raise DamagedError(f"it has no column `{missing[0]}`")
        if num_rows and file.num_rows != num_rows:
            held, asked = count(file.num_rows, "row"), count(num_rows, "question")
            raise DamagedError(f"it holds {held}, and the run says that it asked {asked}")
        keys = pa.concat_tables(file.groups(["id", "trial"] if by_trial else ["id"])).to_pandas()
        if (repeated := keys.duplicated()).any():
            raise DamagedError(f"several rows have one id: {id_words([*dict.fromkeys(keys['id'][repeated])])}")


def stored_rows(
    path: Path, columns: Sequence[str] | None = None, ids: Collection[str] | None = None
) -> Iterator[StoredRow]:
    """Yield the rows of a file with their types, streamed. `columns` must include `id`; `ids` selects rows.

    Raises:
        TrackingError: the file is damaged, or holds more than an evaluation can.
    """
    with RowsFile(path) as file, _file_errors(path):
        yield from (StoredRow.of(row, file.own) for row in _dictionaries(file, columns, ids))


def slim_rows(path: Path, ids: Collection[str]) -> Iterator[StoredRow]:
    """Yield the rows of these ids without the texts of their sources."""
    with RowsFile(path) as file:
        own = file.own
    return stored_rows(path, names_to_read(own, [name for name in SOURCE_FIELDS if name != "text"]), ids)


def read_table(path: Path, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """Yield the rows of a file as dictionaries of columns, streamed.

    With all columns, a column that the file lacks is null in every row.

    Raises:
        TrackingError: the file is damaged, or holds more than an evaluation can.
    """
    with RowsFile(path) as file:
        nulls = dict.fromkeys(schema(file.own).names) if columns is None else {}
        yield from (nulls | row for row in _dictionaries(file, columns))


def _dictionaries(
    file: RowsFile, columns: Sequence[str] | None, ids: Collection[str] | None = None
) -> Iterator[dict[str, Any]]:
    for group in file.groups(columns) if ids is None else _groups_with(file, columns, ids):
        for start in range(0, group.num_rows, PYTHON_ROWS):
            yield from group.slice(start, PYTHON_ROWS).to_pylist()


def _groups_with(file: RowsFile, columns: Sequence[str] | None, ids: Collection[str]) -> Iterator[pa.Table]:
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted = pa.array(list(ids), pa.string())
    for number, keys in enumerate(file.groups(["id"])):
        mask = pc.is_in(keys["id"], wanted)
        if pc.any(mask).as_py():
            yield file.group(number, columns).filter(mask)


def read_groups(path: Path, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Yield the row groups with those of the columns that the file has. Raises as `read_table` does."""
    with RowsFile(path) as file:
        yield from file.groups(columns)
