"""Read rows from a Parquet file of any origin: bounded in rows, values, bytes and length of texts.

A file of a few kilobytes can stand for gigabytes. What its pages claim is looked at first; then one row group is read
at a time, its texts as dictionaries (a text that stands in every row is held once), and measured before any of it
becomes Python.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evaltrack.rows.arrow_schema import schema
from evaltrack.rows.parquet_claims import DamagedError
from evaltrack.rows.rows_file import RowsFile, bounded_groups, damaged_file
from evaltrack.rows.schema_checks import check_columns
from evaltrack.rows.stored_row import StoredRow
from evaltrack.rows.table_rows import AT_ONCE, typed_rows
from evaltrack.rows.values import check_ids

if TYPE_CHECKING:
    import pyarrow as pa


def count_rows(path: Path) -> int:
    """How many rows a Parquet file holds, from its footer.

    Raises:
        TrackingError: the file is damaged, or larger than an evaluation can be.
    """
    return sum(group.rows for group in bounded_groups(path))


def check_rows(path: Path, num_rows: int = 0, *, by_trial: bool = False) -> None:
    """Check what holds of a file as a whole: its version, columns and types, how many rows, none of them twice.

    The values are checked as they are read. `num_rows` is how many questions the run says that it asked, 0 if it does
    not say; `by_trial`: there is one row for each trial of a question.

    Raises:
        TrackingError: the file is damaged, or of a newer version; the message says what is wrong.
    """
    with RowsFile(path) as table:
        _check_whole(table, path, num_rows, ["id", "trial"] if by_trial else ["id"])


def _check_whole(table: RowsFile, path: Path, num_rows: int, columns: Sequence[str]) -> None:
    """As `check_rows`; `columns` together name a row."""
    in_file = sum(group.rows for group in table.groups)
    try:
        check_columns(table.paths)
        if num_rows and in_file != num_rows:
            raise DamagedError(f"it holds {in_file:,} rows, and the run says that it asked {num_rows:,} questions")
        check_ids(lambda: (table.group(number, columns) for number in range(len(table.groups))))
    except DamagedError as error:
        raise damaged_file(path, str(error)) from None


def stored_rows(
    path: Path, columns: Sequence[str] | None = None, ids: Collection[str] | None = None
) -> Iterator[StoredRow]:
    """The rows of a Parquet file with their types, read as `read_table` does; `columns` must hold `id`."""
    with RowsFile(path) as table:
        there = None if columns is None else table.worth_reading_of(columns)
        for group in _groups(table, there, ids):
            yield from typed_rows(group, table.own)


def slim_rows(path: Path, ids: Collection[str]) -> Iterator[StoredRow]:
    """The rows of these ids without the texts of their sources, which are most of a file and are not read."""
    with RowsFile(path) as table:
        for group in _groups(table, table.without_texts, ids):
            yield from typed_rows(group, table.own)


def read_table(
    path: Path, columns: Sequence[str] | None = None, ids: Collection[str] | None = None
) -> Iterator[dict[str, Any]]:
    """The rows of a Parquet file as dictionaries of columns, streamed; with `ids` those rows alone, at little cost.

    A column that the file lacks, as one of an older version does, is null in every row; texts longer than `TEXT_LIMIT`
    are cut, and say how many characters are left out.

    Raises:
        TrackingError: the file is damaged, or holds more than an evaluation can.
    """
    with RowsFile(path) as table:
        nulls = dict.fromkeys(schema(table.own).names) if columns is None else {}
        for group in _groups(table, columns, ids):
            for start in range(0, group.num_rows, AT_ONCE):
                yield from (nulls | row for row in group.slice(start, AT_ONCE).to_pylist())


def read_lists(path: Path, columns: Sequence[str]) -> dict[str, list[Any]]:
    """Some columns of all rows, each as the list of its values; all null where the file lacks it.

    Much faster than `read_table`, and held in memory at once. Of objects single fields can be named, as it does.

    Raises:
        TrackingError: the file is damaged, or holds more than an evaluation can.
    """
    lists: dict[str, list[Any]] = {name.partition(".")[0]: [] for name in columns}
    with RowsFile(path) as table:
        there = table.worth_reading_of(columns)
        for number in range(len(table.groups)):
            group = table.group(number, there)
            for name, values in lists.items():
                in_group = name in group.column_names
                values.extend(group[name].to_pylist() if in_group else [None] * group.num_rows)
    return lists


def _groups(table: RowsFile, columns: Sequence[str] | None, ids: Collection[str] | None) -> Iterator[pa.Table]:
    """The row groups, of all rows or of some; where all columns are read those without any value are left out."""
    import pyarrow as pa
    import pyarrow.compute as pc

    wanted_ids = None if ids is None else pa.array(list(ids), pa.string())
    for number in range(len(table.groups)):
        mask = None
        if wanted_ids is not None:
            mask = pc.is_in(table.group(number, ["id"])["id"], wanted_ids)
            if not pc.any(mask).as_py():
                continue
        group = table.group(number, table.worth_reading if columns is None else columns)
        if mask is not None:
            group = group.filter(mask)  # the whole group is not held while some of its rows are used
        yield group


def read_columns(path: Path, columns: Sequence[str], always: Collection[str] = ()) -> pa.Table:
    """Some columns of all rows, as a table; those that hold no value at all are left out, but for some `always` there.

    A file that lacks one of these is none of ours.

    Raises:
        TrackingError: the file is damaged, or holds more than an evaluation can.
    """
    with RowsFile(path) as table:
        return _columns(table, path, columns, always)


def filled_columns(path: Path, columns: Sequence[str], always: Collection[str] = ()) -> list[str]:
    """Those of the columns that hold a value in any row, or are `always` there.

    Raises:
        TrackingError: the file is damaged, or has no column that always is there.
    """
    with RowsFile(path) as table:
        return _filled(table, path, columns, always)


def checked_columns(path: Path, columns: Sequence[str], num_rows: int) -> pa.Table:
    """`read_columns` of columns that must all be there, from a file that `check_rows` passes, opened once.

    Raises:
        TrackingError: the file is damaged, or of a newer version; the message says what is wrong.
    """
    with RowsFile(path) as table:
        _check_whole(table, path, num_rows, ["id"])
        return _columns(table, path, columns, columns)


def _columns(table: RowsFile, path: Path, columns: Sequence[str], always: Collection[str]) -> pa.Table:
    import pyarrow as pa

    names = _filled(table, path, columns, always)
    groups = [table.group(number, names) for number in range(len(table.groups))]
    if groups:
        return pa.concat_tables(groups)
    fields = schema(table.own)
    return pa.schema([fields.field(name) for name in columns if name in fields.names]).empty_table()


def _filled(table: RowsFile, path: Path, columns: Sequence[str], always: Collection[str]) -> list[str]:
    if missing := sorted(set(always) - table.names):
        raise damaged_file(path, f"it has no column `{missing[0]}`")
    return [name for name in columns if name in table.filled or name in always]


def read_groups(path: Path, columns: Sequence[str]) -> Iterator[pa.Table]:
    """Some columns, those of them that the file has, part by part; raises as `read_columns` does."""
    with RowsFile(path) as table:
        yield from (table.group(number, columns) for number in range(len(table.groups)))
        if not table.groups:
            fields, names = schema(table.own), {column.partition(".")[0] for column in columns}
            yield fields.empty_table().select([name for name in fields.names if name in names & table.names])
