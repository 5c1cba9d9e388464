"""Hostile Parquet files: small ones that stand for much, of wrong types, and with footers that lie."""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from evaltrack.tracking.rows import file_schema
from scripts.fuzzing.writer import damaged_bytes

ROWS_OF_A_BOMB = 60_000


def parquet(table: pa.Table, **options: Any) -> bytes:
    """A table as a Parquet file."""
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, **({"compression": "zstd"} | options))
    return bytes(sink.getvalue())


def repeated(value: Any, rows: int) -> pa.DictionaryArray:
    """A value that all rows share."""
    return pa.DictionaryArray.from_arrays(pa.repeat(pa.scalar(0, pa.int32()), rows), pa.array([value]))


def lying(raw: bytes, rows: int, claimed: int) -> bytes:
    """The file with a footer that claims another number of rows, and of values in each column."""
    size = int.from_bytes(raw[-8:-4], "little")
    footer = raw[-8 - size : -8].replace(b"\x16" + varint(rows), b"\x16" + varint(claimed))
    return raw[: -8 - size] + footer + len(footer).to_bytes(4, "little") + raw[-4:]


def varint(number: int) -> bytes:
    """A number as Thrift writes one."""
    rest, found = number << 1, bytearray()
    while rest > 0x7F:
        found.append(rest & 0x7F | 0x80)
        rest >>= 7
    return bytes([*found, rest])


def wide(**columns: Any) -> pa.Table:
    """A table of ours whose other columns are empty."""
    rows = len(next(iter(columns.values())))
    return pa.table({each.name: columns.get(each.name, pa.nulls(rows, each.type)) for each in file_schema()})


def hostile_files(good: bytes) -> tuple[bytes, ...]:
    """Files that take little room and much memory, or are none of ours; `good` is one of ours with four rows."""
    ids = pa.array(["a", "b"])
    table = pq.read_table(pa.BufferReader(good))
    many = repeated("a", ROWS_OF_A_BOMB)
    bomb = wide(id=many, answer=repeated("x" * 200_000, ROWS_OF_A_BOMB))
    few = wide(id=repeated("a", 3000), question=repeated("x" * 1_000_000, 3000))
    lists = pa.array(["[" + "{}," * 500_000 + "{}]", "[" * 500_000])
    deep: Any = pa.array(["x", "y"])
    for _ in range(60):
        deep = pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), deep)
    broken = pa.StringArray.from_buffers(
        2, pa.array([0, 2, 4], pa.int32()).buffers()[1], pa.py_buffer(b"\xff\xfe\xed\xa0")
    )
    return (
        parquet(bomb),
        parquet(few),
        parquet(wide(id=ids, sources=lists)),
        parquet(wide(id=repeated("a", ROWS_OF_A_BOMB))),
        lying(parquet(table), table.num_rows, 2**40),
        lying(parquet(table), table.num_rows, 2**62),
        parquet(wide(id=ids, question=deep)),
        parquet(wide(id=broken, domain=broken, error=broken)),
        parquet(pa.table([ids, ids], names=["id", "id"])),
        parquet(pa.table({"question": ids})),
        parquet(pa.table({})),
        parquet(table.slice(0, 0)),
        parquet(wide(id=repeated("a", 40)), row_group_size=1),
        parquet(pa.table({"id": ids, "n" * 100_000: ids})),
        parquet(wide(id=ids, hit=pa.array([float("nan"), float("inf")]), recall_at_k=pa.array([1e308, -1e308]))),
    )


ARRAYS: tuple[Callable[[int], pa.Array], ...] = (
    lambda n: pa.array([str(each) for each in range(n)]),
    lambda n: pa.array(["\u202e\0x"] * n),
    lambda n: pa.array([float("nan")] * n),
    lambda n: pa.array([1e308, -1e308, float("inf"), 0.5] * n)[:n],
    lambda n: pa.array([2**63 - 1, -(2**63)] * n)[:n],
    lambda n: pa.array([None] * n),
    lambda n: pa.array([None] * n, pa.string()),
    lambda n: pa.array([True] * n),
    lambda n: pa.array([b"\xff"] * n),
    lambda n: pa.array([["a", None]] * n),
    lambda n: pa.array([[[1]]] * n),
    lambda n: pa.array([{"chunk_id": 1, "x": {"y": [None]}}] * n),
    lambda n: pa.array([[{"chunk_id": "a", "title": None, "score": float("nan")}]] * n),
    lambda n: pa.array([[{"judge": "j", "overall_score": "high"}]] * n),
    lambda n: pa.array([1] * n, pa.timestamp("ns")),
    lambda n: pa.array([1] * n, pa.decimal128(38, 3)),
    lambda n: pa.array(["a"] * n, pa.large_string()),
    lambda n: pa.array(["a"] * n).dictionary_encode(),
    lambda n: pa.array(["x" * 10_000] * n),
)


class ParquetInputs:
    """Parquet files: seeds with damage, and well-formed ones with columns of any type."""

    def __init__(self, seeds: tuple[bytes, ...], chance: Random) -> None:
        self._seeds, self._chance = [seed for seed in seeds if len(seed) < 100_000], chance

    def input(self) -> bytes:
        """One file."""
        chance = self._chance
        if chance.random() < 0.5:
            return damaged_bytes(chance.choice(self._seeds[:1] * 5 + self._seeds), chance)
        raw = self._made()
        return damaged_bytes(raw, chance) if chance.random() < 0.2 else raw

    def _made(self) -> bytes:
        """A table of ours in which some columns are missing, and some are of another type."""
        chance = self._chance
        table = pq.read_table(pa.BufferReader(self._seeds[0]))
        for name in chance.sample(table.column_names, chance.choice([0, 1, 1, 2, 10, 40])):
            if chance.random() < 0.3:
                table = table.drop_columns([name])
            else:
                at = table.column_names.index(name)
                table = table.set_column(at, name, chance.choice(ARRAYS)(table.num_rows))
        compression = chance.choice(["none", "zstd", "snappy", "gzip"])
        return parquet(table, compression=compression, use_dictionary=chance.random() < 0.5)
