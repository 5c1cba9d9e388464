"""Reads the metadata of untrusted Parquet files and computes decoded sizes, as a small file can hold gigabytes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq


def read_metadata(path: Path) -> pq.FileMetaData:
    """Return the metadata of a file.

    Raises:
        pyarrow.ArrowException, OSError: the file is damaged, or no Parquet file.
    """
    import pyarrow.parquet as pq

    return pq.read_metadata(path)


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
