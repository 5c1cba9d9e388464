"""AutoRAG: the questions in `qa.parquet`, each with groups of passages of which one is enough."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

from evaltrack.golden.exchange.fields import RowForm, drafts, note_left_out
from evaltrack.golden.exchange.new_files import NewFiles
from evaltrack.golden.exchange.records import Drafts, ImportSettings, Notes
from evaltrack.golden.exchange.row_files import Rows, read_rows
from evaltrack.golden.exchange.row_writers import write_rows
from evaltrack.golden.exchange.values import is_empty, parsed
from evaltrack.golden.reader import GoldenSet
from evaltrack.records import Question

FORM = RowForm(
    names={
        "qid": "id",
        "query": "question",
        "retrieval_gt": "expected_chunks",
        "generation_gt": "expected_answer",
        "metadata": "metadata",
    },
    texts=("retrieval_gt_contents",),
)
COLUMNS = ("qid", "query", "retrieval_gt", "generation_gt")


def read(files: list[Path], settings: ImportSettings, notes: Notes) -> Drafts:
    """Each row as a golden line that expects the passages of all its groups."""
    for path in files:
        yield from drafts(_flat(read_rows(path, settings), notes), FORM, settings, notes)


def _flat(rows: Rows, notes: Notes) -> Rows:
    for place, row in rows:
        groups = _groups(row.get("retrieval_gt")) if isinstance(row, dict) else None
        if isinstance(row, ValueError) or not isinstance(groups, list):
            yield place, row
            continue
        lists = [group if isinstance(group, list) else [group] for group in groups]
        ids = [key for group in lists for key in group if not is_empty(key)]
        more: dict[str, Any] = {}
        if any(len(group) > 1 for group in lists):
            text = "one passage of each group is enough for AutoRAG; here all are expected, groups are in `metadata`"
            notes.add(text, place)
            held = row.get("metadata")
            more = {"metadata": {**(held if isinstance(held, dict) else {}), "retrieval_gt": lists}}
        yield place, {**row, "retrieval_gt": ids, **more}


def _groups(value: Any) -> Any:
    """The groups that a cell of text holds; what is no list stays as it is, and is refused with its column."""
    if isinstance(value, str) and value.startswith("["):
        with suppress(ValueError):
            return parsed(value)
    return value


def write(golden: GoldenSet, output: Path, files: NewFiles, notes: Notes) -> None:
    """`qa.parquet`: each expected chunk is a group of its own, as all of them are expected."""
    write_rows((_row(question, notes) for question in golden), COLUMNS, output, files)


def _row(question: Question, notes: Notes) -> dict[str, Any]:
    note_left_out(question, ("id", "question", "expected_chunks", "expected_answer"), notes)
    groups = question.expected_chunks
    return {
        "qid": question.id,
        "query": question.question,
        "retrieval_gt": None if groups is None else [[key] for key in groups],
        "generation_gt": [] if question.expected_answer is None else [question.expected_answer],
    }
