"""What a Parquet file claims to hold, read from its footer and the headers of its pages before any page is unpacked.

A page is as large as its header says, whatever the footer says, and some damaged footers end the process that asks
pyarrow about a column of theirs. Both are structures of Thrift's compact protocol (Apache Parquet, `parquet.thrift`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from sys import intern
from typing import Any, BinaryIO

MAGIC = b"PAR1"
FOOTER_BYTES = 1 << 28
HEADER_BYTES = 1 << 16
"""Bytes of a page's header; its statistics hold the smallest and the largest value of the page."""

DEPTH = 20
ROW_GROUPS = 4
"""The field of the footer that lists them."""

TRUE, FALSE, BYTE, DOUBLE, BINARY, LIST, SET, STRUCT = 1, 2, 3, 7, 8, 9, 10, 12


class DamagedError(Exception):
    """The bytes are no Parquet file."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """One column in one row group: where its pages are, how many values they hold, and how many of these are null.

    `nulls` is None where the file does not tell.
    """

    path: str
    start: int
    size: int
    values: int
    nulls: int | None


@dataclass(frozen=True, slots=True)
class RowGroup:
    """Some rows, in chunks by column."""

    rows: int
    chunks: tuple[Chunk, ...]


@dataclass(frozen=True)
class Pages:
    """What the headers of a chunk's pages add up to: bytes once unpacked, and values."""

    size: int
    values: int


def row_groups(path: Path) -> tuple[RowGroup, ...]:
    """The row groups that the footer of a file names.

    Raises:
        DamagedError: it is no Parquet file.
        OSError: it cannot be read.
    """
    status = path.stat()
    return _row_groups(path, status.st_size, status.st_mtime_ns)


@lru_cache(maxsize=32)  # a page reads the files of some runs several times
def _row_groups(path: Path, _size: int, _changed: int) -> tuple[RowGroup, ...]:
    with path.open("rb") as file:
        length = file.seek(0, 2)
        file.seek(max(length - 8, 0))
        end = file.read(8)
        size = int.from_bytes(end[:4], "little")
        if end[4:] != MAGIC or not 0 < size <= min(length - 12, FOOTER_BYTES):
            raise DamagedError("it has no footer")
        file.seek(length - 8 - size)
        footer = file.read(size)
    try:
        groups = _Compact(footer).elements(ROW_GROUPS)  # one by one: the tree of a large file takes ten times its bytes
        return tuple(RowGroup(group[3], tuple(_chunk(column[3], length) for column in group[1])) for group in groups)
    except (KeyError, TypeError, IndexError, AttributeError, UnicodeDecodeError) as error:
        raise DamagedError(f"its footer cannot be read ({type(error).__name__})") from None


def _chunk(column: dict[int, Any], length: int) -> Chunk:
    """The metadata of a column chunk: 3 path, 5 values, 7 packed size, 9 and 11 first pages, 12 statistics."""
    start = min(column[9], column.get(11, column[9]))
    if not (0 <= start <= length and 0 <= column[7] <= length - start):
        raise DamagedError("its footer points outside of it")
    return Chunk(intern(b".".join(column[3]).decode()), start, column[7], column[5], column.get(12, {}).get(3))


def pages(file: BinaryIO, chunk: Chunk) -> Pages:
    """What the headers of a chunk's pages claim.

    Raises:
        DamagedError: a header cannot be read, or leads outside of the chunk.
    """
    size = values = 0
    for header in _headers(file, chunk):
        size += header[2]
        values += (header.get(5) or header.get(8) or {}).get(1, 0)
    return Pages(size, values)


def _headers(file: BinaryIO, chunk: Chunk) -> Iterator[dict[int, Any]]:
    """The header of each page: 2 size unpacked, 3 size packed, 5 or 8 that of a data page."""
    place, end = chunk.start, chunk.start + chunk.size
    while place < end:
        file.seek(place)
        compact = _Compact(file.read(min(HEADER_BYTES, end - place)))
        try:
            header = compact.struct()
            compressed_size = header[3]
            if compressed_size < 0 or header[2] < 0 or (header.get(5) or header.get(8) or {}).get(1, 0) < 0:
                raise DamagedError("a page claims less than nothing")
        except (KeyError, TypeError, IndexError, AttributeError) as error:
            raise DamagedError(f"the header of a page cannot be read ({type(error).__name__})") from None
        yield header
        place += compact.place + compressed_size


class _Compact:
    """Reads Thrift's compact protocol from bytes; the fields of a struct by their numbers."""

    def __init__(self, content: bytes) -> None:
        self._content, self.place = content, 0

    def struct(self, depth: int = 0) -> dict[int, Any]:
        if depth > DEPTH:
            raise DamagedError("it is nested too deep")
        fields: dict[int, Any] = {}
        number, content = 0, self._content
        while kind := self._byte():
            number = number + (kind >> 4) if kind >> 4 else self._zigzag()
            if BYTE < kind & 15 < DOUBLE and (byte := content[self.place]) < 128:  # most numbers are one byte
                self.place += 1
                fields[number] = (byte >> 1) ^ -(byte & 1)
            else:
                fields[number] = self._value(kind & 15, depth)
        return fields

    def elements(self, field: int) -> Iterator[Any]:
        """The elements of a list in one field of a struct, one by one; KeyError where there is no such list."""
        number, is_there = 0, False
        while kind := self._byte():
            number = number + (kind >> 4) if kind >> 4 else self._zigzag()
            if number == field and kind & 15 == LIST:
                is_there = True
                yield from self._elements(0)
            else:
                self._value(kind & 15, 0)
        if not is_there:
            raise KeyError(field)

    def _value(self, kind: int, depth: int, *, in_list: bool = False) -> Any:
        if kind in (TRUE, FALSE, BYTE):
            return self._byte() if in_list or kind == BYTE else kind == TRUE
        if BYTE < kind < DOUBLE:
            return self._zigzag()
        if kind in (DOUBLE, BINARY):
            return self._bytes(8 if kind == DOUBLE else self._varint())
        if kind in (LIST, SET):
            return list(self._elements(depth))
        if kind == STRUCT:
            return self.struct(depth + 1)
        raise DamagedError("a field is of no type of Parquet's")

    def _elements(self, depth: int) -> Iterator[Any]:
        if depth > DEPTH:
            raise DamagedError("it is nested too deep")
        head = self._byte()
        count = head >> 4 if head >> 4 < 15 else self._varint()
        if count > len(self._content) - self.place:
            raise DamagedError("a list is longer than the file")
        for _ in range(count):
            yield self._value(head & 15, depth + 1, in_list=True)

    def _byte(self) -> int:
        self.place += 1
        return self._content[self.place - 1]

    def _bytes(self, count: int) -> bytes:
        if count > len(self._content) - self.place:
            raise DamagedError("a text is longer than the file")
        self.place += count
        return self._content[self.place - count : self.place]

    def _varint(self) -> int:
        content, place = self._content, self.place
        value = shift = 0
        while (byte := content[place]) & 128:
            value |= (byte & 127) << shift
            shift += 7
            place += 1
            if shift > 63:
                raise DamagedError("a number is too long")
        self.place = place + 1
        return value | byte << shift

    def _zigzag(self) -> int:
        value = self._varint()
        return (value >> 1) ^ -(value & 1)
