"""The rows of a part as a Parquet file: each as the journal keeps it, so that nothing of it is lost.

The columns that a run shows hold less than a row: limits, prices and later looks need all of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from evaltrack.evaluation.journal_lines import Line

if TYPE_CHECKING:
    import pyarrow as pa

BATCH = 500
"""Rows written, and read, at a time, and fewer where they are long."""
BATCH_BYTES = 1 << 24


def write_lines(path: Path, lines: Iterable[Line]) -> int:
    """Write the lines of a journal to a new file; how many there were."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    number = 0
    schema = _schema()
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for batch in _batches(lines):
            columns = dict(zip(schema.names, map(list, zip(*batch, strict=True)), strict=True))
            writer.write_table(pa.table(columns, schema=schema))
            number += len(batch)
    return number


def read_lines(source: Path | BinaryIO) -> Iterator[Line]:
    """The lines in a file.

    Raises:
        OSError, pyarrow.ArrowException: it cannot be read, or is not such a file.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetFile(source) as file:
        if not file.schema_arrow.equals(_schema()):
            raise pa.ArrowInvalid("has other columns than the rows of a part")
        for batch in file.iter_batches(BATCH):
            yield from zip(*(column.to_pylist() for column in batch.columns), strict=True)


def _schema() -> pa.Schema:
    import pyarrow as pa

    types = {"id": pa.string(), "digest": pa.string(), "trial": pa.int64(), "failed": pa.bool_()}
    return pa.schema({**types, "row": pa.large_string(), "checksum": pa.int64()})


def _batches(lines: Iterable[Line]) -> Iterator[list[Line]]:
    batch, size = list[Line](), 0
    for line in lines:
        batch.append(line)
        size += len(line[4])
        if len(batch) >= BATCH or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
