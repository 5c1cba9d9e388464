"""Reads the metadata of untrusted Parquet files and computes decoded sizes, as a small file can hold gigabytes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


class _ReadError(Exception):
    """Data was asked for: the metadata has been accepted."""


class _NoData(io.RawIOBase):
    """A file of `size` bytes that cannot be read."""

    def __init__(self, size: int) -> None:
        self._size = size

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return offset + (self._size if whence == io.SEEK_END else 0)

    def tell(self) -> int:
        return self._size

    def read(self, size: int = -1) -> Any:  # noqa: ARG002 - of the protocol
        raise _ReadError


def read_metadata(path: Path) -> pq.FileMetaData:
    """Return the metadata of a file whose columns can be looked at.

    pyarrow ends the process if one asks for the metadata of a column with damaged statistics. Its reader raises for
    the same columns, so the reader is asked first, up to the point at which it reads data.

    Raises:
        pyarrow.ArrowException, OSError: the file is damaged, or no Parquet file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    metadata = pq.read_metadata(path)
    if not metadata.num_columns:  # the reader would make as many empty rows as the file claims
        return metadata
    source = pa.PythonFile(_NoData(path.stat().st_size), mode="r")
    try:
        for _ in pq.ParquetFile(source, metadata=metadata, pre_buffer=True).iter_batches():
            pass
    except _ReadError:
        pass
    return metadata


def text_columns(metadata: pq.FileMetaData) -> list[str]:
    """Return the columns of texts: read as dictionaries, they hold a repeated text once."""
    columns = [metadata.schema.column(place) for place in range(len(metadata.schema))]
    return [column.path for column in columns if column.physical_type == "BYTE_ARRAY"]


def claimed_sizes(group: pq.RowGroupMetaData, names: tuple[str, ...] | None = None) -> list[tuple[int, int]]:
    """Return unpacked bytes and values, as the metadata claims, for each column of a row group.

    `names` selects columns, or fields of objects, by name.
    """
    inside = tuple(f"{name}." for name in names or ())
    columns = [group.column(place) for place in range(group.num_columns)]
    return [
        (column.total_uncompressed_size, column.num_values)
        for column in columns
        if names is None or column.path_in_schema in names or column.path_in_schema.startswith(inside)
    ]


def decoded_size(array: pa.Array) -> int:
    """Return the bytes of an array with each repeated text written out."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(array.type):
        lengths = pc.cast(pc.binary_length(array.dictionary), pa.int64())
        return (pc.sum(lengths.take(array.indices)).as_py() or 0) + int(array.indices.nbytes)
    if pa.types.is_list(array.type):
        return decoded_size(array.flatten()) + int(array.offsets.nbytes)
    if pa.types.is_struct(array.type):
        return sum(map(decoded_size, array.flatten()))
    return int(array.nbytes)
