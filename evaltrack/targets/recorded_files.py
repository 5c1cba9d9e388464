"""The files that hold recorded responses: JSON Lines, or JSON that holds a list of them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from evaltrack.errors import UsageError
from evaltrack.records.json_text import InvalidJsonError, kind_of, parsed, refuse_repeats
from evaltrack.targets.line_index import LineFile, numbered_lines
from evaltrack.targets.mapping import Expression
from evaltrack.targets.response_fields import InvalidResponseError


class JsonLines:
    """A file with one response a line; only the offsets of its lines are held in memory."""

    where = "on line"
    """Goes before the number of a response in a message."""

    def __init__(self, path: Path) -> None:
        self._path, self._file = path, LineFile(path)

    @property
    def is_unchanged(self) -> bool:
        """Whether the file is as it was when it was opened."""
        return self._file.is_unchanged

    def __iter__(self) -> Iterator[tuple[int, int, bytes]]:
        """Number (from 1), offset and text of each line that is not blank."""
        return numbered_lines(self._path)

    def shown(self, number: int) -> str:
        """The file and the number of a response, for messages."""
        return f"{self._path}:{number}"

    def at(self, offset: int) -> bytes:
        """The line that begins at an offset."""
        return self._file.line_at(offset)

    def value(self, raw: bytes) -> Any:
        """The JSON value of a line.

        Raises:
            InvalidJsonError: it is none, or one of its objects has a key twice.
        """
        value = parsed(raw)
        refuse_repeats(raw, value)
        return value

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class JsonItems:
    """A list in a JSON file, which is held in memory: the whole of the file, or what the expression `rows` finds.

    Raises:
        UsageError: the file is not JSON, or the expression finds no list.
    """

    where = "in item"
    is_unchanged = True

    def __init__(self, path: Path, rows: Expression | None) -> None:
        self._path = path
        try:
            whole = parsed(path.read_bytes().removeprefix(b"\xef\xbb\xbf"), allow_nan=True)
            items = rows.find(whole) if rows else whole
        except (InvalidJsonError, InvalidResponseError) as error:
            raise UsageError(f"recorded target {path}: {error}") from None
        if not isinstance(items, list):
            raise UsageError(f"recorded target {path}: `rows` finds {kind_of(items)}; it must be a list")
        self._items = items

    def __iter__(self) -> Iterator[tuple[int, int, Any]]:
        """Number (from 1), place (from 0) and value of each item."""
        return ((place + 1, place, item) for place, item in enumerate(self._items))

    def shown(self, number: int) -> str:
        """The file and the number of an item, for messages."""
        return f"{self._path}: item {number}"

    def at(self, place: int) -> Any:
        """The item at a place."""
        return self._items[place]

    def value(self, item: Any) -> Any:
        """The item itself."""
        return item

    def close(self) -> None:
        """The file is closed already."""


RecordedFile: TypeAlias = JsonLines | JsonItems
