"""An open Parquet file of rows: what its pages claim is looked at before any of it is read, and measured after."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from evaltrack.rows.arrow_schema import schema
from evaltrack.rows.columns import COLUMNS
from evaltrack.rows.fields import SOURCE_COLUMNS
from evaltrack.rows.parquet_claims import DamagedError, RowGroup, pages, row_groups
from evaltrack.rows.plain_arrays import plain_column, stored_size
from evaltrack.rows.rows_error import RowsError, damaged
from evaltrack.rows.schema_checks import (
    check_types,
    check_version,
    own_scores_in,
    paths_of,
    text_paths,
)
from evaltrack.rows.table import GROUP_BYTES
from evaltrack.rows.values import check_values

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

MAX_ROWS = 20_000_000
GROUP_ROWS = 50_000
"""Rows of one row group; `evaltrack.rows.table` writes some 4,000."""

GROUP_VALUES = 5_000_000
"""Values of one column in one row group, those inside of lists included."""

LIMIT = 4 * GROUP_BYTES
"""Bytes of one row group, as its pages claim them and as they then are."""


def bounded_groups(path: Path) -> tuple[RowGroup, ...]:
    """What the footer claims, within bounds."""
    try:
        groups = row_groups(path)
    except (OSError, DamagedError) as error:
        raise damaged_file(path, str(error)) from None
    rows = sum(group.rows for group in groups)
    if rows > MAX_ROWS or any(not 0 <= group.rows <= GROUP_ROWS for group in groups):
        raise damaged_file(path, f"it claims {rows:,} rows in {len(groups):,} parts")
    return groups


class RowsFile:
    """An open file, each part of which is looked at before it is read; `own` names its scores of one's own.

    Raises:
        TrackingError: it is damaged, or of other types than `schema`.
    """

    def __init__(self, path: Path) -> None:
        self._path, self.groups = path, bounded_groups(path)
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

    def __enter__(self) -> RowsFile:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._file.close()

    def _open(self) -> pq.ParquetFile:
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            return pq.ParquetFile(self._path, read_dictionary=[p for p in text_paths() if p in self._columns])
        except (OSError, ValueError, KeyError, pa.ArrowException) as error:
            raise damaged_file(self._path, type(error).__name__) from None

    def _check_types(self) -> None:
        check_version(self._path.name, self._schema.metadata)
        try:
            self.own = own_scores_in(self._schema)
            check_types(self._schema, self.own)
        except DamagedError as error:
            raise damaged_file(self._path, str(error)) from None
        if self._file.num_row_groups != len(self.groups):
            raise damaged_file(self._path, "its footer claims other parts than it has")

    @property
    def paths(self) -> set[str]:
        """The columns and the fields of their objects."""
        return set(paths_of(self._schema))

    @cached_property
    def worth_reading(self) -> list[str]:
        """The columns without those that hold no value in any row; a list may be empty, which is none of these."""
        always = {column.name for column in COLUMNS if column.required or column.type in ("texts", "objects")}
        return [name for name in schema(self.own).names if name in self.filled or name in always]

    def worth_reading_of(self, columns: Sequence[str]) -> list[str]:
        """Those of some columns, or of fields of their objects, that are worth reading."""
        names = set(self.worth_reading)
        return [name for name in columns if name.partition(".")[0] in names]

    @cached_property
    def without_texts(self) -> list[str]:
        """The columns worth reading, of the sources all but their texts."""
        fields = (f"sources.list.element.{column.name}" for column in SOURCE_COLUMNS if column.name != "text")
        return [*(name for name in self.worth_reading if name != "sources"), *fields]

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
                raise damaged_file(self._path, f"{table.num_rows:,} of its rows hold {size:,} bytes")
            sound = pa.table({name: plain_column(name, table[name]) for name in table.column_names})
            sound.validate(full=True)  # texts that are no UTF-8
            check_values(sound)
        except DamagedError as error:
            if "id" in self.names - set(names):  # by which the error names the rows
                self.group(number, [*names, "id"])
            raise damaged_file(self._path, str(error)) from None
        except (OSError, ValueError, pa.ArrowException) as error:
            raise damaged_file(self._path, type(error).__name__) from None
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
            raise damaged_file(self._path, str(error)) from None
        for chunk, claim in zip(chunks, claims, strict=True):
            if claim.values != chunk.values or claim.values > GROUP_VALUES:
                raise damaged_file(self._path, f"column `{chunk.path[:80]}` claims {claim.values:,} values")
        if (size := sum(claim.size for claim in claims)) > LIMIT:
            raise damaged_file(self._path, f"{group.rows:,} of its rows claim {size:,} bytes")


def damaged_file(path: Path, what: str) -> RowsError:
    """The error of a file that is damaged."""
    return damaged(path.name, what)
