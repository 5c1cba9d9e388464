"""AutoRAG: the questions in `qa.parquet`, each with groups of passages of which one is enough."""

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
        "qid": "id",
        "query": "question",
        "retrieval_gt": "expected_chunks",
        "expected_passages": "expected_passages",
        "generation_gt": "expected_answer",
        "metadata": "metadata",
    },
    texts=("retrieval_gt_contents",),
)


def read(files: list[Path], settings: ImportSettings, notes: Notes) -> Drafts:
    """Each row as a golden line: a chunk of each group, or, where a group has several, any one of them."""
    for path in files:
        yield from drafts(_expecting(read_rows(path, settings)), FORM, settings, notes)


def _expecting(rows: Rows) -> Rows:
    for place, row in rows:
        groups = _groups(row.get("retrieval_gt")) if isinstance(row, dict) else None
        if isinstance(row, ValueError) or not isinstance(groups, list):
            yield place, row
            continue
        lists = [group if isinstance(group, list) else [group] for group in groups]
        ids = [[key for key in group if not is_empty(key)] for group in lists]
        if all(len(group) <= 1 for group in ids):
            yield place, {**row, "retrieval_gt": [key for group in ids for key in group]}
        else:
            rest = {name: value for name, value in row.items() if name != "retrieval_gt"}
            yield place, {**rest, "expected_passages": [{"any_of": list(map(str, group))} for group in ids if group]}


def _groups(value: Any) -> Any:
    """The groups that a cell of text holds; what is no list stays as it is, and is refused with its column."""
    if isinstance(value, str) and value.startswith("["):
        with suppress(ValueError):
            return parsed(value)
    return value
