"""DeepEval: the goldens that `EvaluationDataset.save_as` writes as JSON, JSON Lines or CSV, and saved test runs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from evaltrack.golden.exchange.fields import RowForm, drafts
from evaltrack.golden.exchange.records import Drafts, ImportSettings, Notes
from evaltrack.golden.exchange.row_files import Rows, read_rows

FORM = RowForm(
    names={
        "input": "question",
        "expected_output": "expected_answer",
        "expected_tools": "expected_tools",
        "comments": "notes",
        "additional_metadata": "metadata",
    },
    ignored=frozenset(
        {
            *("actual_output", "retrieval_context", "tools_called"),
            *("token_cost", "input_token_count", "output_token_count", "completion_time"),
        }
    ),
    texts=("context",),
    joint="|",
)
RUN_KEYS = frozenset({"actualOutput", "metricsData"})
"""Keys of a test case in a saved test run, which writes names in camel case."""

RESULTS = frozenset({"name", "success", "metrics_data", "run_duration", "order", "flaky", "trace", "turns", "comments"})
"""What a test run adds to its test cases."""


def read(files: list[Path], settings: ImportSettings, notes: Notes) -> Drafts:
    """Each golden as a golden line; conversations of several turns are left out."""
    for path in files:
        yield from drafts(_single(read_rows(path, settings), notes), FORM, settings, notes)


def _single(rows: Rows, notes: Notes) -> Rows:
    for place, row in rows:
        if isinstance(row, dict) and row.keys() & RUN_KEYS:
            yield place, _test_case(row)
        elif isinstance(row, dict) and "scenario" in row and "input" not in row:
            notes.add("conversations, which are no single question: left out", place)
        else:
            yield place, row


def _test_case(row: dict[str, Any]) -> dict[str, Any]:
    """A test case of a test run, named as in a dataset, without its results."""
    plain = {re.sub(r"(?<=[a-z])([A-Z])", r"_\1", name).lower(): value for name, value in row.items()}
    case = {name: value for name, value in plain.items() if name not in RESULTS and name not in FORM.ignored}
    return {("additional_metadata" if name == "metadata" else name): value for name, value in case.items()}
