"""Reads the entries of a golden file (.jsonl or .json) with their line numbers, and replaces the file atomically.

Entries are the lines of `.jsonl`, and the elements of the array in `.json`.
"""

from __future__ import annotations

import json
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic_core import from_json

from evaltrack.errors import GoldenError, Guide
from evaltrack.records.json_text import InvalidJsonError, kind_of, parsed
from evaltrack.system.files import check_result_file, content_digest, locked_folder, write_result_file

MAX_QUESTION_BYTES = 1 << 20
MAX_ARRAY_BYTES = 64 << 20

ARRAY = "write one question a line, or name the file .json"
Entry = tuple[int, object | ValueError]
"""A line number (from 1), and the parsed JSON value there or the error that says why it cannot be parsed."""


def check_file(path: Path, cure: str = "name the file", guide: Guide | None = None) -> None:
    """Check that a file can be read, without waiting for a pipe.

    Raises:
        GoldenError: it is missing, a folder or a device, or not readable. `cure` and `guide` help with a missing one.
    """
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise GoldenError([f"{path}: is a folder; name the files in it"])
        if not stat.S_ISREG(mode):
            raise GoldenError([f"{path}: is not a regular file (a pipe?); save it to a file, it is read twice"])
        with path.open("rb"):
            pass
    except FileNotFoundError:
        others = {each.stem: each for each in path.parent.glob("*.json*")}
        if near := get_close_matches(path.stem, others, n=1, cutoff=0.7):
            raise GoldenError([f"{path}: no such file; did you mean {others[near[0]]}?"]) from None
        raise GoldenError([f"{path}: no such file; {cure}"], guide=guide) from None
    except (OSError, ValueError) as error:
        raise GoldenError([f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}"]) from None


def text_lines(path: Path, limit: int) -> Iterator[tuple[int, bytes | ValueError]]:
    """Yield number (from 1) and text of each line that is not blank, or an error for one of more than `limit` bytes.

    A byte-order mark and CRLF are accepted.
    """
    with path.open("rb") as file:
        number = 0
        while raw := file.readline(limit + 2):
            number += 1
            raw = raw.removeprefix(b"\xef\xbb\xbf") if number == 1 else raw
            if len(raw.rstrip(b"\r\n")) > limit:
                yield number, ValueError(f"is longer than {limit:,} bytes; make it shorter")
                while raw and not raw.endswith(b"\n"):
                    raw = file.readline(limit)
            elif text := raw.strip():
                yield number, text


def line_entries(
    path: Path,
    limit: int = MAX_QUESTION_BYTES,
    read: Callable[..., Any] = from_json,
) -> Iterator[Entry]:
    """Yield the lines of a `.jsonl` file, each of at most `limit` bytes, parsed by `read`."""
    for number, text in text_lines(path, limit):
        yield number, _parse(text, read=read) if isinstance(text, bytes) else text


def array_entries(path: Path) -> Iterator[Entry]:
    """Yield the elements of the array in a `.json` file, each with the line it starts on."""
    raw = path.read_bytes() if path.stat().st_size <= MAX_ARRAY_BYTES else None
    if raw is None:
        yield 1, ValueError(f"is larger than {MAX_ARRAY_BYTES:,} bytes; write it as .jsonl, one object a line")
        return
    text = raw.removeprefix(b"\xef\xbb\xbf")
    value = _parse(text, may_repeat=True)
    if isinstance(value, ValueError):
        place = re.search(r" at line (\d+) column", str(value))
        yield int(place[1]) if place else 1, value
    elif not isinstance(value, list):
        yield 1, ValueError(f"holds {kind_of(value)}; a .json golden set is one array of objects")
    else:
        for line, element in _elements(text.decode()):
            yield line, _parse(element.encode())


def _elements(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and text of each element of the outermost array."""
    decoder, at, line, position = json.JSONDecoder(), text.index("[") + 1, 1, 0
    while True:
        while text[at] in " \t\r\n,":
            at += 1
        if text[at] == "]":
            return
        line, position = line + text.count("\n", position, at), at
        _, at = decoder.raw_decode(text, at)
        yield line, text[position:at]


def _parse(raw: bytes, **how: Any) -> Any:
    """Return the JSON value in `raw`, or (not raised) an InvalidJsonError that says why it cannot be parsed."""
    try:
        return parsed(raw, **how)
    except InvalidJsonError as error:
        return error


class ChangedMeanwhileError(GoldenError):
    """The file was changed after it was read."""


def only_writer(path: Path) -> AbstractContextManager[None]:
    """Return a lock that excludes other evaltrack processes from writing, on systems that have locks.

    The folder is locked, not the file, because a write replaces the file.
    """
    return locked_folder(path.resolve().parent)


def is_empty_file(path: Path) -> bool:
    """Return True if a golden file does not exist or holds no questions."""
    return not path.exists() or path.read_bytes().strip() in (b"", b"[]")


def read_objects(path: Path) -> list[dict[str, Any]]:
    """Return the objects of a golden file that has been checked, with their fields as written.

    Raises:
        ChangedMeanwhileError: it now holds bad lines.
    """
    entries = list(array_entries(path) if path.suffix == ".json" else line_entries(path))
    objects = [value for _, value in entries if isinstance(value, dict)]
    if len(objects) != len(entries):
        raise _changed(path)
    return objects


def write_objects(path: Path, objects: Iterable[Mapping[str, Any]], digest: str) -> None:
    """Replace a golden file by these objects, one per line. A symbolic link and the file mode are kept.

    Args:
        path: A `.jsonl` or `.json` golden set; created if it does not exist.
        objects: Its questions.
        digest: The `content_digest` of the file before it was read.

    Raises:
        ChangedMeanwhileError: the file now has another digest.
        UsageError: the file or its folder is read-only or no such thing.
        InconclusiveError: the disk is full or fails.
    """
    lines = [json.dumps(each, ensure_ascii=False) for each in objects]
    text = "[\n  " + ",\n  ".join(lines) + "\n]\n" if path.suffix == ".json" else "".join(f"{line}\n" for line in lines)
    check_result_file(path)
    if content_digest(path) != digest:
        raise _changed(path)
    write_result_file(path, [text], "the old file was kept")


def _changed(path: Path) -> ChangedMeanwhileError:
    return ChangedMeanwhileError([f"{path}: was changed at the same time; try again"])
