"""The entries of a golden file, each with its line: the lines of `.jsonl`, the elements of the array in `.json`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic_core import from_json

MAX_QUESTION_BYTES = 1 << 20
MAX_ARRAY_BYTES = 64 << 20

Entry = tuple[int, object | ValueError]
"""A line number (from 1) and what stands there: a parsed JSON value, or why it cannot be parsed."""


def line_entries(path: Path) -> Iterator[Entry]:
    """The lines of a `.jsonl` file. A byte-order mark, CRLF and blank lines are simply read."""
    with path.open("rb") as file:
        number = 0
        while raw := file.readline(MAX_QUESTION_BYTES + 2):
            number += 1
            if len(raw.rstrip(b"\r\n")) > MAX_QUESTION_BYTES:
                yield number, ValueError(f"is longer than {MAX_QUESTION_BYTES:,} bytes; a question must be shorter")
                while raw and not raw.endswith(b"\n"):
                    raw = file.readline(MAX_QUESTION_BYTES)
                continue
            raw = raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
            if text := raw.strip(b" \t\r\n"):
                yield number, _parse(text)


def array_entries(path: Path) -> Iterator[Entry]:
    """The elements of the one array in a `.json` file, each with the line it starts on."""
    raw = path.read_bytes() if path.stat().st_size <= MAX_ARRAY_BYTES else None
    if raw is None:
        yield 1, ValueError(f"is larger than {MAX_ARRAY_BYTES:,} bytes; write it as .jsonl, one object a line")
        return
    text = raw.removeprefix(b"\xef\xbb\xbf")
    value = _parse(text)
    if isinstance(value, ValueError):
        yield _broken_line(text, str(value)), value
    elif not isinstance(value, list):
        yield 1, ValueError(f"holds {kind_of(value)}; a .json golden set is one array of objects")
    else:
        yield from zip(_element_lines(raw.decode("utf-8-sig")), value, strict=True)


def _broken_line(raw: bytes, message: str) -> int:
    """The line on which an array stops being JSON, from what `_parse` said of it."""
    if match := re.search(r" at line (\d+) column", message):
        return int(match[1])
    match = re.search(r"UTF-8 at byte (\d+)", message)
    at = int(match[1]) if match else raw.find(b"\0")
    return 1 + raw.count(b"\n", 0, max(at, 0))


def _element_lines(text: str) -> Iterator[int]:
    """The line on which each element of the (valid) outermost array starts."""
    import json

    decoder, at, line, position = json.JSONDecoder(), text.index("[") + 1, 1, 0
    while True:
        while text[at] in " \t\r\n,":
            at += 1
        if text[at] == "]":
            return
        line, position = line + text.count("\n", position, at), at
        yield line
        _, at = decoder.raw_decode(text, at)


def _parse(raw: bytes) -> Any:
    """The JSON value in `raw`, or a ValueError that says where it stops being JSON (returned, not raised)."""
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        return ValueError(f"is not valid UTF-8 at byte {error.start + 1}; save the file as UTF-8")
    if b"\0" in raw:
        return ValueError("holds a NUL byte; remove it")
    try:
        return from_json(raw, allow_inf_nan=False)
    except ValueError as error:
        return ValueError(f"is not JSON: {str(error).replace(' at line 1 column ', ' at column ')}")


def kind_of(value: object) -> str:
    """What a JSON value is, in words."""
    kinds = {list: "an array", str: "a string", bool: "a boolean", type(None): "null", dict: "an object"}
    return kinds.get(type(value), "a number")
