"""Read rows from a Parquet file of any origin: bounded in rows, values, bytes and length of texts.

A file of a few kilobytes can stand for gigabytes. What its pages claim is looked at first; then one row group is read
at a time, its texts as dictionaries (a text that stands in every row is held once), and measured before any of it
becomes Python.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaltrack.rows.arrow_schema import schema
from evaltrack.rows.columns import COLUMNS
from evaltrack.rows.parquet_claims import DamagedError, RowGroup, pages, row_groups
from evaltrack.rows.plain_arrays import plain_column, stored_size
from evaltrack.rows.rows_error import RowsError, damaged
from evaltrack.rows.schema_checks import (
    check_columns,
    check_types,
    check_version,
    own_scores_in,
    paths_of,
    text_paths,
)
from evaltrack.rows.stored_row import StoredRow
from evaltrack.rows.table import GROUP_BYTES
from evaltrack.rows.values import check_ids, check_values

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

MAX_ROWS = 20_000_000
GROUP_ROWS = 50_000
"""Rows of one row group; `evaltrack.rows.table` writes 2,000."""

GROUP_VALUES = 5_000_000
"""Values of one column in one row group, those inside of lists included."""

LIMIT = 4 * GROUP_BYTES
"""Bytes of one row group, as its pages claim them and as they then are."""

AT_ONCE = 200
"""Rows that become Python together."""


def count_rows(path: Path) -> int:
    """How many rows a Parquet file holds, from its footer.

    Raises:
        TrackingError: the file is damaged, or larger than an evaluation can be.
    """
    return sum(group.rows for group in _bounded_groups(path))


def check_rows(path: Path, num_rows: int = 0, *, by_trial: bool = False) -> None:
    """Check what holds of a file as a whole: its version, columns and types, how many rows, none of them twice.

    The values are checked as they are read. `num_rows` is how many questions the run says that it asked, 0 if it does
    not say; `by_trial`: there is one row for each trial of a question.

    Raises:
        TrackingError: the file is damaged, or of a newer version; the message says what is wrong.
    """
    with _Table(path) as table:
        _check_whole(table, path, num_rows, ["id", "trial"] if by_trial else ["id"])


def _check_whole(table: _Table, path: Path, num_rows: int, columns: Sequence[str]) -> None:
    """As `check_rows`; `columns` together name a row."""
    in_file = sum(group.rows for group in table.groups)
    try:
        check_columns(table.paths)
        if num_rows and in_file != num_rows:
            raise DamagedError(f"it holds {in_file:,} rows, and the run says that it asked {num_rows:,} questions")
        check_ids(lambda: (table.group(number, columns) for number in range(len(table.groups))))
    except DamagedError as error:
        raise _damaged(path, str(error)) from None


def stored_rows(
    path: Path, columns: Sequence[str] | None = None, ids: Collection[str] | None = None
) -> Iterator[StoredRow]:
    """The rows of a Parquet file with their types, read as `read_table` does; `columns` must hold `id`."""
    with _Table(path) as table:
        yield from (StoredRow.of(row, table.own) for row in _rows(table, columns, ids))


def read_table(
    path: Path, columns: Sequence[str] | None = None, ids: Collection[str] | None = None
) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file as dictionaries of columns, streamed; with `ids` those rows alone, at little cost.

    A column that the file lacks, as one of an older version does, is null in every row; texts longer than `TEXT_LIMIT`
    are cut, and say how many characters are left out.

    Raises:
        TrackingError: the file is damaged, or holds more than an evaluation can.
    """
    with _Table(path) as table:
        yield from _rows(table, columns, ids)


def _rows(table: _Table, columns: Sequence[str] | None, ids: Collection[str] | None) -> Iterator[dict[str, Any]]:
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted_ids = None if ids is None else pa.array(list(ids), pa.string())
    missing = dict.fromkeys(schema(table.own).names) if columns is None else {}
    for number in range(len(table.groups)):
        mask = None
        if wanted_ids is not None:
            mask = pc.is_in(table.group(number, ["id"])["id"], wanted_ids)
            if not pc.any(mask).as_py():
                continue
        group = table.group(number, table.worth_reading if columns is None else columns)
        group = group if mask is None else group.filter(mask)
        for start in range(0, group.num_rows, AT_ONCE):
            for row in group.slice(start, AT_ONCE).to_pylist():
                yield missing | row if missing else row


def read_columns(path: Path, columns: Sequence[str], always: Collection[str] = ()) -> pa.Table:
    """Some columns of all rows, as a table; those that hold no value at all are left out, but for some `always` there.

    A file that lacks one of these is none of ours.

    Raises:
        TrackingError: the file is damaged, or holds more than an evaluation can.
    """
    with _Table(path) as table:
        return _columns(table, path, columns, always)


def filled_columns(path: Path, columns: Sequence[str], always: Collection[str] = ()) -> list[str]:
    """Those of the columns that hold a value in any row, or are `always` there.

    Raises:
        TrackingError: the file is damaged, or has no column that always is there.
    """
    with _Table(path) as table:
        return _filled(table, path, columns, always)


def checked_columns(path: Path, columns: Sequence[str], num_rows: int) -> pa.Table:
    """`read_columns` of columns that must all be there, from a file that `check_rows` passes, opened once.

    Raises:
        TrackingError: the file is damaged, or of a newer version; the message says what is wrong.
    """
    with _Table(path) as table:
        _check_whole(table, path, num_rows, ["id"])
        return _columns(table, path, columns, columns)


def _columns(table: _Table, path: Path, columns: Sequence[str], always: Collection[str]) -> pa.Table:
    import pyarrow as pa

    names = _filled(table, path, columns, always)
    groups = [table.group(number, names) for number in range(len(table.groups))]
    if groups:
        return pa.concat_tables(groups)
    fields = schema(table.own)
    return pa.schema([fields.field(name) for name in columns if name in fields.names]).empty_table()


def _filled(table: _Table, path: Path, columns: Sequence[str], always: Collection[str]) -> list[str]:
    if missing := sorted(set(always) - table.names):
        raise _damaged(path, f"it has no column `{missing[0]}`")
    return [name for name in columns if name in table.filled or name in always]


def read_groups(path: Path, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Some columns, those of them that the file has, part by part; raises as `read_columns` does."""
    with _Table(path) as table:
        yield from (table.group(number, columns) for number in range(len(table.groups)))
        if not table.groups:
            fields, names = schema(table.own), {column.partition(".")[0] for column in columns}
            yield fields.empty_table().select([name for name in fields.names if name in names & table.names])


def _bounded_groups(path: Path) -> tuple[RowGroup, ...]:
    """What the footer claims, within bounds."""
    try:
        groups = row_groups(path)
    except (OSError, DamagedError) as error:
        raise _damaged(path, str(error)) from None
    rows = sum(group.rows for group in groups)
    if rows > MAX_ROWS or any(not 0 <= group.rows <= GROUP_ROWS for group in groups):
        raise _damaged(path, f"it claims {rows:,} rows in {len(groups):,} parts")
    return groups


class _Table:
    """An open file, each part of which is looked at before it is read; `own` names its scores of one's own.

    Raises:
        TrackingError: it is damaged, or of other types than `schema`.
    """

    def __init__(self, path: Path) -> None:
        self._path, self.groups = path, _bounded_groups(path)
        self._columns = {chunk.path for group in self.groups for chunk in group.chunks}
        self.filled = {
            chunk.path.partition(".")[0]
            for group in self.groups
            for chunk in group.chunks
            if chunk.nulls is None or chunk.nulls < chunk.values
        }
        self._file = self._open()
        self._schema = self._file.schema_arrow  # which is converted each time anew
        try:
            self._check_types()
        except BaseException:
            self._file.close()
            raise

    def __enter__(self) -> _Table:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._file.close()

    def _open(self) -> pq.ParquetFile:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return pq.ParquetFile(self._path, read_dictionary=[p for p in text_paths() if p in self._columns])
        except (OSError, ValueError, KeyError, pa.ArrowException) as error:
            raise _damaged(self._path, type(error).__name__) from None

    def _check_types(self) -> None:
        check_version(self._path.name, self._schema.metadata)
        try:
            self.own = own_scores_in(self._schema)
            check_types(self._schema, self.own)
        except DamagedError as error:
            raise _damaged(self._path, str(error)) from None
        if self._file.num_row_groups != len(self.groups):
            raise _damaged(self._path, "its footer claims other parts than it has")

    @property
    def paths(self) -> set[str]:
        """The columns and the fields of their objects."""
        return set(paths_of(self._schema))

    @cached_property
    def worth_reading(self) -> list[str]:
        """The columns without those that hold no value in any row; a list may be empty, which is none of these."""
        always = {column.name for column in COLUMNS if column.required or column.type in ("texts", "objects")}
        return [name for name in schema(self.own).names if name in self.filled or name in always]

    @property
    def names(self) -> set[str]:
        """The columns."""
        return set(self._schema.names)

    def group(self, number: int, columns: Sequence[str] | None) -> pa.Table:
        """One row group, measured, with plain texts and values that an evaluation can hold."""
        import pyarrow as pa

        there = self._schema.names
        names = [name for name in columns or schema(self.own).names if name.partition(".")[0] in there]
        self._check_pages(number, names)
        try:
            table = self._file.read_row_group(number, columns=names, use_threads=False)
            size = sum(stored_size(chunk) for column in table.columns for chunk in column.chunks)
            if size > LIMIT:
                raise _damaged(self._path, f"{table.num_rows:,} of its rows hold {size:,} bytes")
            sound = pa.table({name: plain_column(name, table[name]) for name in table.column_names})
            sound.validate(full=True)  # texts that are no UTF-8
            check_values(sound)
        except DamagedError as error:
            raise _damaged(self._path, str(error)) from None
        except (OSError, ValueError, pa.ArrowException) as error:
            raise _damaged(self._path, type(error).__name__) from None
        return sound

    def _check_pages(self, number: int, columns: Sequence[str]) -> None:
        """What the pages of these columns claim, which is what reading them takes."""
        group = self.groups[number]
        inside = tuple(f"{name}." for name in columns)
        chunks = [chunk for chunk in group.chunks if chunk.path in columns or chunk.path.startswith(inside)]
        try:
            with self._path.open("rb") as file:
                claims = [pages(file, chunk) for chunk in chunks]
        except (OSError, DamagedError) as error:
            raise _damaged(self._path, str(error)) from None
        for chunk, claim in zip(chunks, claims, strict=True):
            if claim.values != chunk.values or claim.values > GROUP_VALUES:
                raise _damaged(self._path, f"column `{chunk.path[:80]}` claims {claim.values:,} values")
        if (size := sum(claim.size for claim in claims)) > LIMIT:
            raise _damaged(self._path, f"{group.rows:,} of its rows claim {size:,} bytes")


def _damaged(path: Path, what: str) -> RowsError:
    return damaged(path.name, what)
