"""Tables with columns of any names: CSV, TSV, Excel and Parquet, and arrays of objects in JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from evaltrack.golden.exchange.fields import FIELDS, RowForm, drafts, golden_row
from evaltrack.golden.exchange.new_files import NewFiles
from evaltrack.golden.exchange.records import Drafts, ImportSettings, Notes
from evaltrack.golden.exchange.row_files import Rows, read_rows
from evaltrack.golden.exchange.row_writers import write_rows
from evaltrack.golden.reader import GoldenSet

FORM = RowForm({name: name for name in FIELDS}, promotes=False)


OF_MANY_SHAPES = ("metadata", "expected_passages", "expected_arguments", "grades")


def read(files: list[Path], settings: ImportSettings, notes: Notes) -> Drafts:
    """Each row as a golden line; a column called as a field (`Expected Answer`) need not be named."""
    for path in files:
        yield from drafts(_with_names(read_rows(path, settings), settings), FORM, settings, notes)


def _with_names(rows: Rows, settings: ImportSettings) -> Rows:
    named = set(settings.columns.values())
    for place, row in rows:
        if isinstance(row, ValueError):
            yield place, row
        else:
            yield place, {field_name(name) if name not in named else name: value for name, value in row.items()}


def field_name(column: str) -> str:
    """The field that a column is called as, whatever its case and spaces; else its own name."""
    name = "_".join(str(column).lower().replace("-", " ").split())
    return name if name in FIELDS else column


def write(golden: GoldenSet, output: Path, files: NewFiles, _: Notes) -> None:
    """A column for each field that any question has."""
    present = {name for question in golden for name in golden_row(question)}
    columns = [name for name in FIELDS if name in present]
    write_rows(_rows(golden, output), columns, output, files)


def _rows(golden: GoldenSet, output: Path) -> Iterator[dict[str, Any]]:
    """The fields of each question; objects of many shapes are text where columns have one type."""
    for question in golden:
        row = golden_row(question)
        if output.suffix == ".parquet":
            shaped = {name: row[name] for name in OF_MANY_SHAPES if name in row}
            row |= {name: json.dumps(value, ensure_ascii=False) for name, value in shaped.items()}
        yield row
