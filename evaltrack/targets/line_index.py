"""Where the line of each question stands in a file, in 16 bytes a line, however long the ids are."""

from __future__ import annotations

from array import array
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO
from weakref import finalize

from evaltrack.targets.results.files import MAX_LINE_BYTES

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


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
        self._hashes: NDArray[np.int64] = hashes[order]
        self._offsets: NDArray[np.int64] = offsets[order]

    def offsets(self, key: Hashable) -> list[int]:
        """Where the line of this key may stand, in the order of the file; empty where there is none."""
        wanted = hash(key)
        start, end = (int(self._hashes.searchsorted(wanted, side)) for side in ("left", "right"))
        return [int(offset) for offset in self._offsets[start:end]]

    def shared(self) -> list[int]:
        """The offsets of all lines whose hash another line has too, ascending: of a file without repeats none."""
        import numpy as np

        alike = np.zeros(len(self._hashes), dtype=bool)
        if len(alike):
            pairs = self._hashes[1:] == self._hashes[:-1]
            alike[1:] |= pairs
            alike[:-1] |= pairs
        return sorted(int(offset) for offset in self._offsets[alike])


class LineFile:
    """A file whose lines are read at their offsets; it is opened once, when the first of them is."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._opened: BinaryIO | None = None

    def line_at(self, offset: int) -> bytes:
        """The line that begins at an offset, without a byte order mark and the space around it."""
        if self._opened is None:
            self._opened = self._path.open("rb")
            self._close = finalize(self, self._opened.close)  # also where nobody closes it
        self._opened.seek(offset)
        return self._opened.readline(MAX_LINE_BYTES).removeprefix(b"\xef\xbb\xbf").strip()

    def close(self) -> None:
        """Close the file; the next line opens it again."""
        if self._opened is not None:
            self._close()
            self._opened = None
