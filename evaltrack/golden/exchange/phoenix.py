"""Arize Phoenix: a dataset as CSV (`input_*`, `output_*`, `metadata_*`), as its API answers, or as JSON Lines."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from evaltrack.golden.exchange.fields import RowForm, drafts
from evaltrack.golden.exchange.records import Drafts, ImportSettings, Notes
from evaltrack.golden.exchange.row_files import Rows, read_rows
from evaltrack.golden.exchange.values import is_empty, parsed

FORM = RowForm(
    names={
        **dict.fromkeys(("example_id", "id"), "id"),
        **dict.fromkeys(("input", "messages"), "question"),
        **dict.fromkeys(("output", "ideal"), "expected_answer"),
        "metadata": "metadata",
    },
    ignored=frozenset({"updated_at", "node_id"}),
)
PARTS = ("input", "output", "metadata")


def read(files: list[Path], settings: ImportSettings, notes: Notes) -> Drafts:
    """Each example as a golden line."""
    for path in files:
        yield from drafts(_in_parts(read_rows(path, settings)), FORM, settings, notes)


def _in_parts(rows: Rows) -> Rows:
    """The columns of a CSV as the objects that they were made of."""
    for place, row in rows:
        if isinstance(row, ValueError):
            yield place, row
            continue
        whole: dict[str, Any] = {}
        for name, value in row.items():
            part, _, key = name.partition("_")
            if part in PARTS and key:
                whole.setdefault(part, {}).update({} if is_empty(value) else {key: value})
            else:
                whole[name] = _part(value) if name in PARTS else value
        yield place, whole


def _part(value: Any) -> Any:
    """The object that a cell of `to_dataframe` holds, as Python prints it."""
    if isinstance(value, str) and value.startswith("{"):
        with suppress(ValueError):
            return parsed(value)
    return value
