"""Ragas: what `EvaluationDataset` and the test set generator write (`to_jsonl`, `to_csv`), of versions since 0.1."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evaltrack.golden.exchange.fields import RowForm, drafts, note_left_out
from evaltrack.golden.exchange.new_files import NewFiles
from evaltrack.golden.exchange.records import Drafts, ImportSettings, Notes
from evaltrack.golden.exchange.row_files import Rows, read_rows
from evaltrack.golden.exchange.row_writers import write_rows
from evaltrack.golden.reader import GoldenSet

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
COLUMNS = ("user_input", "reference_context_ids", "reference")


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


def write(golden: GoldenSet, output: Path, files: NewFiles, notes: Notes) -> None:
    """A sample for each question; it has no place for an id."""
    rows = []
    for question in golden:
        note_left_out(question, ("question", "expected_chunks", "expected_answer"), notes)
        row: dict[str, Any] = {"user_input": question.question}
        if question.expected_chunks is not None:
            row |= {"reference_context_ids": list(question.expected_chunks)}
        if question.expected_answer is not None:
            row |= {"reference": question.expected_answer}
        rows.append(row)
    write_rows(rows, COLUMNS, output, files)
