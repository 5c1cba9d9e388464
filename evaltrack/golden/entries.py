"""The entries of a golden file, each with its line: the lines of `.jsonl`, the elements of the array in `.json`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from evaltrack.records.json_text import (
    InvalidJsonError,
    Repeats,
    kind_of,
    may_repeat,
    num_keys,
    parsed,
    refuse_repeats,
    spread_kind,
)

MAX_QUESTION_BYTES = 1 << 20
MAX_ARRAY_BYTES = 64 << 20

ARRAY = "write one question a line, or name the file .json"
SPREAD = "write each question on one line, as `jq -c .` does"
"""The cures of an array, and of an object over several lines, in a `.jsonl` file."""

Entry = tuple[int, object | ValueError]
"""A line number (from 1) and what stands there: a parsed JSON value, or why it cannot be parsed."""


def line_entries(path: Path) -> Iterator[Entry]:
    """The lines of a `.jsonl` file. A byte-order mark, CRLF and blank lines are simply read.

    Of one whose first value goes on over several lines there is one entry, which says so.
    """
    with path.open("rb") as file:
        number, is_first = 0, True
        while raw := file.readline(MAX_QUESTION_BYTES + 2):
            number += 1
            if len(raw.rstrip(b"\r\n")) > MAX_QUESTION_BYTES:
                yield number, ValueError(f"is longer than {MAX_QUESTION_BYTES:,} bytes; a question must be shorter")
                while raw and not raw.endswith(b"\n"):
                    raw = file.readline(MAX_QUESTION_BYTES)
                continue
            raw = raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
            if text := raw.strip(b" \t\r\n"):
                value = _parse(text, repeats=False)
                if is_first and isinstance(value, ValueError) and (kind := spread_kind(text, _next_line(file))):
                    yield number, ValueError(f"holds {kind} over several lines; {ARRAY if 'array' in kind else SPREAD}")
                    return
                is_first = False
                yield number, value


def _next_line(file: BinaryIO) -> bytes:
    """The next line that is not blank, which stays to be read; empty where there is none."""
    place, text = file.tell(), b""
    while not text and (raw := file.readline(MAX_QUESTION_BYTES)):
        text = raw.strip()
    file.seek(place)
    return text


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
        whole = raw.decode("utf-8-sig")
        repeats = Repeats() if may_repeat(text, num_keys(value)) else None
        for line, element in zip(_element_lines(whole, repeats), value, strict=True):
            yield line, (repeats and repeats.take()) or element


def _broken_line(raw: bytes, message: str) -> int:
    """The line on which an array stops being JSON, from what `_parse` said of it."""
    if match := re.search(r" at line (\d+) column", message):
        return int(match[1])
    match = re.search(r"UTF-8 at byte (\d+)", message)
    at = int(match[1]) if match else raw.find(b"\0")
    return 1 + raw.count(b"\n", 0, max(at, 0))


def _element_lines(text: str, repeats: Repeats | None) -> Iterator[int]:
    """The line on which each element of the (valid) outermost array starts; keys that it repeats go to `repeats`."""
    import json

    decoder, at, line, position = json.JSONDecoder(object_pairs_hook=repeats), text.index("[") + 1, 1, 0
    while True:
        while text[at] in " \t\r\n,":
            at += 1
        if text[at] == "]":
            return
        line, position = line + text.count("\n", position, at), at
        _, at_end = decoder.raw_decode(text, at)
        yield line
        at = at_end


def _parse(raw: bytes, *, repeats: bool = True) -> Any:
    """The JSON value in `raw`, or an InvalidJsonError that says why there is none (returned, not raised).

    Without `repeats` no key may stand twice in one object.
    """
    try:
        value = parsed(raw)
        if not repeats:
            refuse_repeats(raw, value)
    except InvalidJsonError as error:
        return error
    return value
