"""Corrections of single texts in a golden file; every other byte of it stays as it is. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from json.decoder import JSONDecoder
from typing import NamedTuple

from evaltrack.golden.lint.finding import Edit

_DECODER = JSONDecoder()
_BLANKS = re.compile(r"[ \t\r\n]*")


class _Span(NamedTuple):
    """A value in a text: where it starts, where it ends (the place after), and what it is."""

    start: int
    end: int
    value: object


class EditError(ValueError):
    """A text that should be corrected is not where it was."""


def apply_edits(text: str, edits: Sequence[Edit], *, is_array: bool) -> str:
    """The content of a golden file with some texts corrected.

    Args:
        text: content of the file, with its line ends as they are.
        edits: one for each text at most.
        is_array: whether it is a `.json` array, and not one object a line.

    Raises:
        EditError: the file does not hold a text that should be corrected, or names a field twice.
    """
    wanted: dict[int, list[Edit]] = {}
    for edit in edits:
        wanted.setdefault(edit.number, []).append(edit)
    parts, end = list[str](), 0
    for number, start in enumerate(_array_starts(text) if is_array else _line_starts(text)):
        if number in wanted:
            for span, replacement in _replacements(text, start, wanted.pop(number)):
                parts += [text[end : span.start], replacement]
                end = span.end
    if wanted:
        raise EditError(f"there is no question {min(wanted) + 1}")
    return "".join([*parts, text[end:]])


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
    yield from (span.start for span in _elements(text, text.index("[")))


def _replacements(text: str, start: int, edits: Sequence[Edit]) -> list[tuple[_Span, str]]:
    """What is to be replaced in one question, in the order of the text."""
    fields: dict[str, _Span] = {}
    for name, span in _members(text, start):
        if name in fields:
            raise EditError(f"`{name}` is there twice")
        fields[name] = span
    ascii_only = text.isascii()
    made = [
        (_place(text, fields, edit), "" if edit.after is None else _quoted(edit.after, ascii_only)) for edit in edits
    ]
    return sorted(made)


def _quoted(text: str, ascii_only: bool) -> str:
    return json.dumps(text, ensure_ascii=ascii_only)


def _place(text: str, fields: Mapping[str, _Span], edit: Edit) -> _Span:
    """Where a text stands that is to be replaced; of one that is to be removed, with the comma before it."""
    span = fields.get(edit.field)
    elements = list(_elements(text, span.start)) if span and isinstance(span.value, list) else []
    if span and edit.index is not None:
        span = elements[edit.index] if edit.index < len(elements) else None
    if span is None or str(span.value) != edit.before:
        raise EditError(f"`{edit.field}` does not hold `{edit.before}`")
    if edit.after is None and edit.index:
        return _Span(elements[edit.index - 1].end, span.end, span.value)
    return span


def _members(text: str, start: int) -> Iterator[tuple[str, _Span]]:
    """The names and values of the object at `start`."""
    at = _after_blanks(text, start + 1)
    while text[at] != "}":
        name, at = _DECODER.raw_decode(text, at)
        at = _after_blanks(text, _after_blanks(text, at) + 1)  # the colon
        value, end = _DECODER.raw_decode(text, at)
        yield name, _Span(at, end, value)
        at = _after_comma(text, end)


def _elements(text: str, start: int) -> Iterator[_Span]:
    """The elements of the array at `start`."""
    at = _after_blanks(text, start + 1)
    while text[at] != "]":
        value, end = _DECODER.raw_decode(text, at)
        yield _Span(at, end, value)
        at = _after_comma(text, end)


def _after_comma(text: str, at: int) -> int:
    at = _after_blanks(text, at)
    return _after_blanks(text, at + 1) if text[at] == "," else at


def _after_blanks(text: str, at: int) -> int:
    match = _BLANKS.match(text, at)
    return match.end() if match else at
