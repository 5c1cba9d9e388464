"""Inspect: samples as `json_dataset` and `csv_dataset` read them (`input`, `target`, `choices`, `id`, `metadata`).

Also those of an evaluation log, a `.eval` file or JSON, without their results.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evaltrack.golden.exchange.fields import RowForm, drafts
from evaltrack.golden.exchange.records import Drafts, ImportSettings, Notes
from evaltrack.golden.exchange.row_files import Rows, read_rows

FORM = RowForm({"id": "id", "input": "question", "target": "expected_answer", "metadata": "metadata"})
OF_A_SAMPLE = ("id", "input", "target", "choices", "metadata")


def read(files: list[Path], settings: ImportSettings, notes: Notes) -> Drafts:
    """Each sample as a golden line; the letter of a right choice becomes its text. Of a log its first epoch is read."""
    for path in files:
        yield from drafts(_with_texts(_without_results(read_rows(path, settings))), FORM, settings, notes)


def _without_results(rows: Rows) -> Rows:
    for place, row in rows:
        if isinstance(row, ValueError) or "epoch" not in row:
            yield place, row
        elif row["epoch"] in (1, "1"):
            yield place, {name: row[name] for name in OF_A_SAMPLE if name in row}


def _with_texts(rows: Rows) -> Rows:
    for place, row in rows:
        choices = row.get("choices") if isinstance(row, dict) else None
        if isinstance(row, ValueError) or not isinstance(choices, list):
            yield place, row
            continue
        target = row.get("target")
        targets = target if isinstance(target, list) else [target]
        texts = [_choice(each, choices) for each in targets]
        yield place, {**row, "target": texts[0] if len(texts) == 1 else texts}


def _choice(target: Any, choices: list[Any]) -> Any:
    at = ord(target) - ord("A") if isinstance(target, str) and len(target) == 1 else -1
    return choices[at] if 0 <= at < len(choices) else target
