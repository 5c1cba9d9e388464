"""Langfuse: the items of a dataset, as its API answers or its UI exports them (JSON, JSON Lines, CSV)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evaltrack.golden.exchange.fields import RowForm, drafts
from evaltrack.golden.exchange.records import Drafts, ImportSettings, Notes
from evaltrack.golden.exchange.row_files import Rows, read_rows
from evaltrack.golden.exchange.values import parsed

FORM = RowForm(
    names={
        "id": "id",
        "input": "question",
        **dict.fromkeys(("expectedOutput", "expected_output"), "expected_answer"),
        "metadata": "metadata",
    },
    ignored=frozenset(
        {
            *("status", "datasetId", "datasetName", "createdAt", "updatedAt", "sourceTraceId", "sourceObservationId"),
            *("dataset_id", "dataset_name", "created_at", "updated_at", "source_trace_id", "source_observation_id"),
            *("projectId", "project_id", "mediaReferences", "media_references", "htmlSourcePath", "version"),
        }
    ),
)


def read(files: list[Path], settings: ImportSettings, notes: Notes) -> Drafts:
    """Each item as a golden line; archived items are left out."""
    for path in files:
        yield from drafts(_active(read_rows(path, settings), notes), FORM, settings, notes)


def _active(rows: Rows, notes: Notes) -> Rows:
    for place, row in rows:
        if isinstance(row, dict) and row.get("status") == "ARCHIVED":
            notes.add("archived items: left out", place)
        elif isinstance(row, dict):
            yield place, {name: _unquoted(value) for name, value in row.items()}
        else:
            yield place, row


def _unquoted(value: Any) -> Any:
    """A text that a CSV holds as JSON."""
    if isinstance(value, str) and len(value) > 1 and value[0] == value[-1] == '"':
        try:
            return parsed(value)
        except ValueError:
            return value
    return value
