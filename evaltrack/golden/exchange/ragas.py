"""Ragas: what `EvaluationDataset` and the test set generator write (`to_jsonl`, `to_csv`), of versions since 0.1."""

from __future__ import annotations

from pathlib import Path

from evaltrack.golden.exchange.fields import RowForm, drafts
from evaltrack.golden.exchange.records import Drafts, ImportSettings, Notes
from evaltrack.golden.exchange.row_files import Rows, read_rows

FORM = RowForm(
    names={
        **dict.fromkeys(("user_input", "question"), "question"),
        **dict.fromkeys(("reference", "ground_truth"), "expected_answer"),
        "reference_context_ids": "expected_chunks",
    },
    ignored=frozenset(
        {"response", "answer", "multi_responses", "retrieved_contexts", "retrieved_context_ids", "contexts"}
    ),
    texts=("reference_contexts",),
)


def read(files: list[Path], settings: ImportSettings, notes: Notes) -> Drafts:
    """Each sample as a golden line."""
    for path in files:
        yield from drafts(_of_today(read_rows(path, settings)), FORM, settings, notes)


def _of_today(rows: Rows) -> Rows:
    """Test sets of Ragas 0.1 call the passages of a question `contexts`, as other files call what came back."""
    for place, row in rows:
        if isinstance(row, dict) and "evolution_type" in row and "contexts" in row:
            yield place, {("reference_contexts" if key == "contexts" else key): value for key, value in row.items()}
        else:
            yield place, row
