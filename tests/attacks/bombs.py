"""Small Parquet files that stand for a great deal of memory, each otherwise as evaltrack writes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from evaltrack.records import Question, Response, Row, Source
from evaltrack.rows.columns import flatten, schema

MEGABYTE = 1_000_000


def _rows(n: int) -> pa.Table:
    question = Question(id="0", question="?", expected_chunks=("a",), domain="d")
    response = Response(answer="so", sources=(Source(chunk_id="a", text="t"),))
    row = Row(position=0, question=question, response=response, started_at=0, seconds=0, scores={"recall_at_k": 1.0})
    flat = flatten(row.model_copy(update={"passed": True}), 5)
    return pa.Table.from_pylist([flat | {"id": str(i), "position": i} for i in range(n)], schema=schema())


def _with(table: pa.Table, name: str, array: pa.Array) -> pa.Table:
    return table.set_column(table.column_names.index(name), name, array)


def _repeated(n: int, text: str) -> pa.Array:
    return pa.DictionaryArray.from_arrays(
        pa.array([0]).take(pa.nulls(n, pa.int32()).fill_null(0)).cast(pa.int32()), pa.array([text])
    )


def repeated_text(path: Path) -> None:
    """Two thousand rows with the same answer of five megabytes."""
    pq.write_table(_with(_rows(2000), "answer", _repeated(2000, "x" * 5 * MEGABYTE)), path, compression="zstd")


def repeated_id(path: Path) -> None:
    pq.write_table(_with(_rows(2000), "domain", _repeated(2000, "x" * 5 * MEGABYTE)), path, compression="zstd")


def repeated_source(path: Path) -> None:
    table = _rows(2000)
    texts = _repeated(2000, "x" * 5 * MEGABYTE)
    names = ["chunk_id", "title", "url", "score", "text", "text_digest"]
    empty = [pa.nulls(2000, pa.float64() if name == "score" else pa.string()) for name in names]
    sources = pa.StructArray.from_arrays(
        [texts if n == "text" else e for n, e in zip(names, empty, strict=True)], names
    )
    offsets = pa.array(range(2001), pa.int32())
    table = _with(table, "sources", pa.ListArray.from_arrays(offsets, sources))
    pq.write_table(table, path, compression="zstd")


def many_rows(path: Path) -> None:
    """Forty million rows that hold nothing but the same id."""
    group = pa.table({"id": _repeated(2 * MEGABYTE, "a")})
    with pq.ParquetWriter(path, group.schema, compression="zstd") as writer:
        for _ in range(20):
            writer.write_table(group, row_group_size=2 * MEGABYTE)


def long_list(path: Path) -> None:
    """One row that expects thirty million chunks."""
    expected = pa.ListArray.from_arrays(pa.array([0, 30 * MEGABYTE], pa.int32()), pa.nulls(30 * MEGABYTE, pa.string()))
    pq.write_table(_with(_rows(1), "expected", expected), path, compression="zstd")


def wide_texts(path: Path) -> None:
    """Texts that differ, compress well, and take a quarter of a gigabyte in one row group."""
    texts = pa.array([f"{i}" + "x" * (MEGABYTE // 2) for i in range(500)])
    pq.write_table(_with(_rows(500), "answer", texts), path, compression="zstd", use_dictionary=False)


BOMBS: dict[str, Callable[[Path], None]] = {
    made.__name__: made for made in (repeated_text, repeated_id, repeated_source, many_rows, long_list, wide_texts)
}
