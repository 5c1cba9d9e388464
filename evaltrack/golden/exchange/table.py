"""Tables with columns of any names: CSV, TSV, Excel and Parquet, and arrays of objects in JSON."""

from __future__ import annotations

from pathlib import Path

from evaltrack.golden.exchange.fields import FIELDS, RowForm, drafts
from evaltrack.golden.exchange.records import Drafts, ImportSettings, Notes
from evaltrack.golden.exchange.row_files import Rows, read_rows

FORM = RowForm({name: name for name in FIELDS}, promotes=False)


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
