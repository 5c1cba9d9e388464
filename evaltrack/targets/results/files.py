"""The rows of a file of results, whatever its form: JSON, JSON Lines, CSV, Parquet, a log of Inspect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeAlias

from evaltrack.errors import GoldenError, UsageError
from evaltrack.golden.exchange.columnar import parquet_rows
from evaltrack.golden.exchange.log_archive import samples_in
from evaltrack.golden.exchange.records import ImportSettings, shown
from evaltrack.golden.exchange.row_files import RESULT_LISTS, read_json, read_rows, results_in
from evaltrack.records.json_text import FAULTS, InvalidJsonError, kind_of, open_kind, parsed
from evaltrack.targets.recorded_response import ANSWERS
from evaltrack.targets.results.detection import LINES, only_format, shown_formats

Entry: TypeAlias = tuple[str, dict[str, Any] | ValueError]
"""A place (`out.json: results[7]`), and what stands there, or why it is no row."""

MAX_LINE_BYTES = 16 << 20
SAMPLE_ROWS = 20
"""Rows whose keys show the format; a row may lack what others have."""

TABLES = (".csv", ".tsv")

SPREAD = "holds an object over several lines; write each response on one line, as `jq -c .` does"


def is_other_form(path: Path, start: bytes) -> bool:
    """Whether a file is none of JSON Lines in our own form, and no TREC run.

    Args:
        path: Its suffix tells a CSV or TSV, as nothing in these does.
        start: The first line that is not blank.
    """
    if start.startswith((b"PK\x03\x04", b"PAR1", b"[")) or path.suffix.lower() in TABLES:
        return True
    if not start.startswith(b"{"):
        return False
    value = _json(start)
    if value is None:  # an object over several lines, or a bad line
        return _looks_spread(start)
    return bool(isinstance(value, dict) and (results_in(value)[0] or set(shown_formats(value)) - {LINES}))


def _looks_spread(start: bytes) -> bool:
    """Whether a line can be the first of an object that is printed over several."""
    return start.rstrip() == b"{" or start.rstrip().endswith((b"[", b"{", b","))


def read_results(path: Path, start: bytes, form: str) -> tuple[str, Iterator[Entry]]:
    """The format of a file, that which was chosen or else shown, and its rows.

    Raises:
        UsageError: the format cannot be told, or the file holds no rows.
        GoldenError: it cannot be read at all.
    """
    rows = _entries(path, start)
    first = list(islice(rows, SAMPLE_ROWS))
    good = [row for _, row in first if isinstance(row, dict)]
    if not first:
        raise UsageError(f"recorded target {path}: holds no results")
    if not form and not good:
        raise UsageError(f"{first[0][0]}: {first[0][1]}")
    return form or only_format(path, set[str]().union(*good)), chain(first, rows)


def _entries(path: Path, start: bytes) -> Iterator[Entry]:
    if start.startswith(b"PK\x03\x04"):
        yield from ((place, _object(row)) for place, row in samples_in(path))
    elif start.startswith(b"PAR1"):
        yield from ((f"{path}: row {number}", row) for number, row in enumerate(parquet_rows(path), start=1))
    elif path.suffix.lower() in TABLES:
        yield from read_rows(path, ImportSettings())
    elif start.startswith(b"{") and isinstance(value := _json(start), dict) and not results_in(value)[0]:
        yield from _lines(path)
    else:
        yield from _whole(path, is_open=open_kind(start) == "an object")


def _whole(path: Path, *, is_open: bool) -> Iterator[Entry]:
    """The objects of the one array, or of the list that a tool keeps in its object.

    Where the first line `is_open`, an object goes on after it, which may also be a response of ours.
    """
    spread = UsageError(f"recorded target {path}: {SPREAD}")
    try:
        value = read_json(path, allow_nan=True)
    except GoldenError as error:
        if is_open and FAULTS["trailing characters"][0] in error.message:
            raise spread from None
        raise
    if is_open and set(value) & {"id", *ANSWERS} and not results_in(value)[0]:
        raise spread
    name, items = results_in(value) if isinstance(value, dict) else ("", value)
    if not isinstance(items, list) or (isinstance(value, dict) and not name):
        keys = ", ".join(".".join(place) for place in RESULT_LISTS)
        raise UsageError(f"recorded target {path}: is an object without a list of results ({keys})")
    yield from ((f"{path}: {name}[{number}]", _object(item)) for number, item in enumerate(items, start=1))


def _lines(path: Path) -> Iterator[Entry]:
    with path.open("rb") as file:
        number = 0
        while raw := file.readline(MAX_LINE_BYTES):
            number += 1
            if len(raw) == MAX_LINE_BYTES:
                raise UsageError(f"{path}:{number}: is longer than {MAX_LINE_BYTES:,} bytes; shorten the response")
            text = raw.removeprefix(b"\xef\xbb\xbf").strip()
            if text:
                yield f"{path}:{number}", _object(_parsed(text))


def _parsed(raw: bytes) -> Any:
    try:
        return parsed(raw, allow_nan=True)
    except InvalidJsonError as error:
        return error


def _json(raw: bytes) -> Any:
    """The value of one line; None where it is no whole value."""
    value = _parsed(raw)
    return None if isinstance(value, ValueError) else value


def _object(value: object) -> dict[str, Any] | ValueError:
    if isinstance(value, dict | ValueError):
        return value
    return ValueError(f"is {kind_of(value)}; a result is a JSON object")


def names_shown(names: Iterable[str]) -> str:
    """Names out of a file, for one line of a message."""
    return ", ".join(f"`{shown(name)}`" for name in list(names)[:9])
