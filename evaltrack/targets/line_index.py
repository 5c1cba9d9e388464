"""Where the line of each question stands in a file, in 16 bytes a line, however long the ids are."""

from __future__ import annotations

import os
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Hashable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO
from weakref import finalize

from evaltrack.errors import BadLinesError, Guide, UsageError
from evaltrack.records.recorded import IdHashes

MAX_LINE_BYTES = 16 << 20
"""Of one recorded response."""


def numbered_lines(path: Path) -> Iterator[tuple[int, int, bytes]]:
    """Line number (from 1), byte offset and text of each line that is not blank."""
    with path.open("rb") as file:
        offset = number = 0
        while raw := file.readline(MAX_LINE_BYTES):
            number += 1
            if len(raw) == MAX_LINE_BYTES:
                raise UsageError(f"{path}:{number}: is longer than {MAX_LINE_BYTES:,} bytes; shorten the response")
            text = raw.removeprefix(b"\xef\xbb\xbf").strip() if number == 1 else raw.strip()
            if text:
                yield number, offset, text
            offset += len(raw)


def refuse(problems: Sequence[str]) -> None:
    """Raise a BadLinesError that lists problems, where there are some."""
    if problems:
        raise BadLinesError(problems, guide=Guide.RESPONSES)


class LineIndex:
    """Gives the byte offsets at which the line of a key may stand.

    Only their hashes are held. Whoever reads a line compares its key, as another one may have the same hash.
    """

    def __init__(self, lines: Iterable[tuple[Hashable, int]]) -> None:
        """Take the key and the offset of each line, in the order of the file."""
        import numpy as np

        hash_array, offset_array = array("q"), array("q")
        for key, offset in lines:
            hash_array.append(hash(key))
            offset_array.append(offset)
        hashes, offsets = np.frombuffer(hash_array, np.int64), np.frombuffer(offset_array, np.int64)
        order = np.argsort(hashes, kind="stable")
        self._hashes = hashes[order].data  # in which `bisect` is quicker than numpy in its array
        self._offsets = offsets[order].data

    def offsets(self, key: Hashable) -> list[int]:
        """Where the line of this key may stand, in the order of the file; empty where there is none."""
        key_hash = hash(key)
        start = bisect_left(self._hashes, key_hash)
        return self._offsets[start : bisect_right(self._hashes, key_hash, lo=start)].tolist()

    def others(self, keys: IdHashes) -> list[int]:
        """The offsets of lines whose key is none of these, ascending."""
        import numpy as np

        hashes = np.asarray(self._hashes)
        return sorted(np.asarray(self._offsets)[~np.isin(hashes, keys.values())].tolist())

    def shared(self) -> list[int]:
        """The offsets of all lines whose hash another line has too, ascending: of a file without repeats none."""
        import numpy as np

        hashes, alike = np.asarray(self._hashes), np.zeros(len(self._hashes), dtype=bool)
        if len(alike):
            pairs = hashes[1:] == hashes[:-1]
            alike[1:] |= pairs
            alike[:-1] |= pairs
        return sorted(np.asarray(self._offsets)[alike].tolist())


class LineFile:
    """A file whose lines are read at their offsets; it is opened once, when the first of them is."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened: BinaryIO | None = None
        self._position = 0
        self._stamp = _stamp(path.stat())

    @property
    def is_unchanged(self) -> bool:
        """Whether size and time of the file are those of when this was made.

        Raises:
            OSError: it is gone.
        """
        return _stamp(os.fstat(self._open().fileno())) == self._stamp

    def line_at(self, offset: int) -> bytes:
        """The line that begins at an offset, without a byte order mark and the space around it."""
        file = self._open()
        if offset != self._position:  # most lines are asked for in their order
            file.seek(offset)
        raw = file.readline(MAX_LINE_BYTES)
        self._position = offset + len(raw)
        return raw.removeprefix(b"\xef\xbb\xbf").strip()

    def _open(self) -> BinaryIO:
        if self._opened is None:
            self._opened = self._path.open("rb")
            self._close = finalize(self, self._opened.close)  # also where nobody closes it
            self._position = 0
        return self._opened

    def close(self) -> None:
        """Close the file; the next line opens it again."""
        if self._opened is not None:
            self._close()
            self._opened = None


def _stamp(status: os.stat_result) -> tuple[int, int]:
    """What changes whenever a file is written to."""
    return status.st_size, status.st_mtime_ns
