"""Where the values of a golden file stand in its text, so that one can be changed and the rest stays. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from json.decoder import JSONDecoder
from typing import NamedTuple

_DECODER = JSONDecoder()
_BLANKS = re.compile(r"[ \t\r\n]*")


class Span(NamedTuple):
    """A value in a text: where it starts, where it ends (the place after), and what it is."""

    start: int
    end: int
    value: object


def object_starts(text: str, *, is_array: bool) -> Iterator[int]:
    """Where the object of each question starts: in a `.json` array, or one a line."""
    return _array_starts(text) if is_array else _line_starts(text)


def _line_starts(text: str) -> Iterator[int]:
    """Where the object of each line starts; blank lines have none."""
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        at = start + (start == 0 and text.startswith("\ufeff"))
        if (first := _after_blanks(text, at)) < end:
            yield first
        start = end


def _array_starts(text: str) -> Iterator[int]:
    """Where each element of the outermost array starts."""
    yield from (span.start for span in elements(text, text.index("[")))


def members(text: str, start: int) -> Iterator[tuple[str, Span]]:
    """The names and values of the object at `start`."""
    return ((name, span) for _, name, span in placed_members(text, start))


def placed_members(text: str, start: int) -> Iterator[tuple[int, str, Span]]:
    """The members of the object at `start`: where each begins, its name and its value."""
    at = _after_blanks(text, start + 1)
    while text[at] != "}":
        first = at
        name, at = _DECODER.raw_decode(text, at)
        at = _after_blanks(text, _after_blanks(text, at) + 1)  # the colon
        value, end = _DECODER.raw_decode(text, at)
        yield first, name, Span(at, end, value)
        at = _after_comma(text, end)


def elements(text: str, start: int) -> Iterator[Span]:
    """The elements of the array at `start`."""
    at = _after_blanks(text, start + 1)
    while text[at] != "]":
        value, end = _DECODER.raw_decode(text, at)
        yield Span(at, end, value)
        at = _after_comma(text, end)


def _after_comma(text: str, at: int) -> int:
    at = _after_blanks(text, at)
    return _after_blanks(text, at + 1) if text[at] == "," else at


def _after_blanks(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    return match.end() if match else at
