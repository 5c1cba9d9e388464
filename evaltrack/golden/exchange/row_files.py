"""Files of rows, each row an object with its place: JSON, JSON Lines, CSV, TSV, Excel, Parquet, YAML, Inspect."""

from __future__ import annotations

import csv
import stat
from collections.abc import Callable, Iterator, Mapping
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TypeAlias

from evaltrack.errors import GoldenError
from evaltrack.golden.entries import MAX_ARRAY_BYTES, MAX_QUESTION_BYTES, array_entries, line_entries
from evaltrack.golden.exchange.records import ImportSettings, shown
from evaltrack.records.json_text import InvalidJsonError, kind_of, parsed

Row: TypeAlias = tuple[str, dict[str, Any] | ValueError]
"""A place (`mine.csv:7`), and what stands there by column, or why it is no row."""

Rows: TypeAlias = Iterator[Row]

RESULT_LISTS = (
    *(("results", "results"), ("results",), ("testCases",), ("testRunData", "testCases"), ("samples",), ("rows",)),
)
"""Where tools keep the results of an evaluation in an object."""


def read_rows(path: Path, settings: ImportSettings) -> Rows:
    """The rows of a file, in the form that its suffix names.

    Raises:
        GoldenError: the file cannot be read, or its suffix names no form; `problems` says which do.
    """
    check_file(path)
    form = FORMS.get(path.suffix.lower())
    if form is None:
        raise GoldenError([f"{path}: cannot tell what it holds; end its name in one of {', '.join(FORMS)}"])
    try:
        yield from form(path, settings)
    except OSError as error:
        raise GoldenError([f"{path}: cannot be read: {error.strerror or error}"]) from None


def check_file(path: Path) -> None:
    """Raise where there is no such file.

    Raises:
        GoldenError: it is missing, a folder or a device, or may not be read.
    """
    if path.is_dir():
        raise GoldenError([f"{path}: is a folder; name the files in it"])
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise GoldenError([f"{path}: is not a regular file (a pipe?); save it to a file, it is read twice"])
        with path.open("rb"):
            pass
    except FileNotFoundError:
        raise GoldenError([f"{path}: no such file"]) from None
    except (OSError, ValueError) as error:
        raise GoldenError([f"{path}: cannot be read: {getattr(error, 'strerror', None) or error}"]) from None


def read_json(path: Path, *, allow_nan: bool = False) -> Any:
    """The one JSON value in a file; with `allow_nan` also where a tool wrote numbers that are not finite.

    Raises:
        GoldenError: it is too large, or no JSON.
    """
    check_file(path)
    if path.stat().st_size > MAX_ARRAY_BYTES:
        raise GoldenError([f"{path}: is larger than {MAX_ARRAY_BYTES:,} bytes; write it as .jsonl, one object a line"])
    try:
        return parsed(path.read_bytes().removeprefix(b"\xef\xbb\xbf"), allow_nan=allow_nan)
    except InvalidJsonError as error:
        raise GoldenError([f"{path}: {error}"]) from None


def open_text(path: Path, settings: ImportSettings) -> TextIOWrapper:
    """A text file in the encoding that was named, or that its byte-order mark names, else UTF-8.

    Raises:
        GoldenError: it cannot be opened, or there is no such encoding.
    """
    check_file(path)
    with path.open("rb") as file:
        start = file.read(2)
    guess = "utf-16" if start in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    try:
        return path.open(encoding=settings.encoding or guess, newline="")
    except LookupError:
        raise GoldenError([f"encoding: there is no `{shown(settings.encoding)}`; write e.g. utf-8 or cp1252"]) from None


def bad_encoding(path: Path, error: UnicodeError) -> tuple[str, ValueError]:
    """The line of a file that is in another encoding, and the cure."""
    name = error.encoding if isinstance(error, UnicodeDecodeError) else "the named encoding"
    place = f"{path}:{_first_bad_line(path, name)}" if name.startswith("utf-8") else str(path)
    return place, ValueError(f"cannot be read as {name}; name its encoding with `encoding=`, e.g. cp1252")


def _first_bad_line(path: Path, encoding: str) -> int:
    """The first line that cannot be decoded; a text is read in blocks, whose errors do not tell."""
    with path.open("rb") as file:
        return next((number for number, line in enumerate(file, start=1) if not _is_text(line, encoding)), 1)


def _is_text(line: bytes, encoding: str) -> bool:
    try:
        line.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _json_lines(path: Path, _: ImportSettings) -> Rows:
    for number, value in line_entries(path):
        yield f"{path}:{number}", _object(value)


def _json(path: Path, _: ImportSettings) -> Rows:
    """The one array, or the array under the key that holds one, as APIs answer (`data`, `examples`)."""
    with path.open("rb") as file:
        start = file.read(256).removeprefix(b"\xef\xbb\xbf").lstrip()[:1]
    if start != b"{":
        for line, value in array_entries(path):
            yield f"{path}:{line}", _object(value)
        return
    value = read_json(path, allow_nan=True)
    key, items = results_in(value)
    if not items:
        key, items = array_in(value)
    if not items:
        raise GoldenError([f"{path}: holds an object without a list of objects; write an array of objects"])
    for number, value in enumerate(items, start=1):
        yield f"{path}: {key}[{number}]", _object(value)


def results_in(value: Any) -> tuple[str, list[Any]]:
    """The list of results in the object of a tool, and its keys; an empty name where there is none."""
    for keys in RESULT_LISTS:
        inner = value
        for key in keys:
            inner = inner.get(key) if isinstance(inner, dict) else None
        if isinstance(inner, list):
            return ".".join(keys), inner
    return "", []


def array_in(value: Any) -> tuple[str, list[Any]]:
    """The first list of objects in an object, one level further down too, and its key."""
    if isinstance(value, dict):
        for key, items in value.items():
            if isinstance(items, list) and items and all(isinstance(item, dict) for item in items):
                return shown(key), items
        for key, below in value.items():
            if isinstance(below, dict) and any(isinstance(items, list) for items in below.values()):
                name, items = array_in(below)
                if items:
                    return f"{shown(key)}.{name}", items
    return "", []


def _object(value: object) -> dict[str, Any] | ValueError:
    if isinstance(value, ValueError):
        return value
    return value if isinstance(value, dict) else ValueError(f"is {kind_of(value)}; a row is a JSON object")


def _separated(path: Path, settings: ImportSettings) -> Rows:
    """The lines of a CSV or TSV with a header; the separator of a CSV is the commonest of its header."""
    line = 0
    with open_text(path, settings) as file:
        try:
            header = file.readline(MAX_QUESTION_BYTES)
            file.seek(0)
            reader = csv.reader(file, delimiter=_delimiter(path, header), strict=True)
            names = _header(path, next(reader, []))
            line = reader.line_num
            for cells in reader:
                place, line = f"{path}:{line + 1}", reader.line_num
                if any(map(str.strip, cells)):
                    yield place, _cells(names, cells)
        except csv.Error as error:
            yield (
                f"{path}:{line + 1}",
                ValueError(f"is no CSV: {error}; put cells with separators, quotes or breaks in quotes"),
            )
        except UnicodeError as error:
            yield bad_encoding(path, error)


def _delimiter(path: Path, header: str) -> str:
    if path.suffix.lower() in (".tsv", ".tab"):
        return "\t"
    return max(",;\t|", key=header.count)


def _header(path: Path, cells: list[str]) -> list[str]:
    names = [cell.strip().removeprefix("\ufeff") for cell in cells]
    twice = {name for name in names if name and names.count(name) > 1}
    if not any(names):
        raise GoldenError([f"{path}:1: holds no header; write the names of the columns in its first line"])
    if twice:
        raise GoldenError([f"{path}:1: two columns are called `{shown(min(twice))}`; rename one"])
    return names


def _cells(names: list[str], cells: list[Any]) -> dict[str, Any] | ValueError:
    if len(cells) > len(names) and any(not (cell is None or cell == "") for cell in cells[len(names) :]):
        return ValueError(
            f"has {len(cells)} cells, but the header has {len(names)}; put cells with separators in quotes"
        )
    return {name: cell for name, cell in zip(names, cells, strict=False) if name}


def _excel(path: Path, _: ImportSettings) -> Rows:
    from evaltrack.golden.exchange.columnar import excel_rows

    rows = excel_rows(path)
    first = next(rows, (1, ()))[1]
    names = _header(path, ["" if cell is None else str(cell) for cell in first])
    for number, cells in rows:
        if any(cell is not None for cell in cells):
            yield f"{path}:{number}", _cells(names, list(cells))


def _parquet(path: Path, _: ImportSettings) -> Rows:
    from evaltrack.golden.exchange.columnar import parquet_rows

    for number, row in enumerate(parquet_rows(path), start=1):
        yield f"{path}: row {number}", row


def _log(path: Path, _: ImportSettings) -> Rows:
    from evaltrack.golden.exchange.log_archive import samples_in

    yield from ((place, _object(sample)) for place, sample in samples_in(path))


def _yaml(path: Path, _: ImportSettings) -> Rows:
    from evaltrack.golden.exchange.yaml_files import read_yaml

    value = read_yaml(path)
    key, items = ("", value) if isinstance(value, list) else array_in(value)
    if not items:
        raise GoldenError([f"{path}: holds no list of objects; write one"])
    for number, item in enumerate(items, start=1):
        yield f"{path}: {key or 'item'}[{number}]", _object(item)


FORMS: Mapping[str, Callable[[Path, ImportSettings], Rows]] = {
    ".jsonl": _json_lines,
    ".ndjson": _json_lines,
    ".json": _json,
    ".csv": _separated,
    ".tsv": _separated,
    ".xlsx": _excel,
    ".parquet": _parquet,
    ".yaml": _yaml,
    ".yml": _yaml,
    ".eval": _log,
}
"""The reader for each suffix."""
