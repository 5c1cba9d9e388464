"""A file of rows that hold something in each kind of column."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from evaltrack.records import Turn, Verdict
from evaltrack.records.row import Row, RowSource
from evaltrack.tracking.rows import file_columns, file_schema

SOURCES = (
    RowSource(chunk_id="a", title="A", url="http://x", score=0.5, text="of a", text_digest="1" * 16, finds=("p",)),
    RowSource(title="B", text_digest="2" * 16),
    RowSource(chunk_id="c", text="", text_digest="3" * 16),
)
SCORED = {"hit": 1.0, "recall_at_k": 0.5, "reciprocal_rank": 0.5, "num_tokens": 70.0, "overall_score": 0.75}
VERDICTS = (Verdict(judge="one", overall_score=0.75, reasoning="so"), Verdict(judge="two", reasoning="ü"))


def rich_rows(own: tuple[str, ...] = ()) -> list[Row]:
    """Rows by chunk ids, titles and passages, negative, declined, failed, not measured, judged, and of trials."""
    rows = [
        Row(id="ids", expected=("c", "d"), sources=SOURCES, scores=SCORED, passed=True, verdicts=VERDICTS),
        Row(id="titles", expected=("B",), by_title=True, sources=SOURCES, scores=SCORED, passed=False),
        Row(id="passages", expected=("p",), by_passage=True, sources=SOURCES, scores=SCORED, passed=True),
        Row(id="negative", expected=(), sources=(), abstained=True, scores={"negative_pass": 1.0}, passed=True),
        Row(id="failed", error="target_error: boom", expected=("a",), traceback="of it"),
        Row(id="unmeasured", sources=SOURCES[:1], answer="yes", expected_answer="no"),
        Row(
            id="trials",
            expected=("a",),
            sources=SOURCES,
            scores=SCORED | dict.fromkeys(own, -1.5),
            passed=True,
            trials=3,
            passes=2,
            history=(Turn(role="user", content="before"),),
            tool_calls=("search",),
        ),
    ]
    return [_sound(row, position) for position, row in enumerate(rows)]


def _sound(row: Row, position: int) -> Row:
    place = {"domain": "d", "digest": "0" * 16, "position": position, "started_at": 1.0, "seconds": 0.5}
    return row.model_copy(update={"question": f"What is {row.id}?", **place})


def written(rows: list[Row], path: Path, own: tuple[str, ...] = ()) -> Path:
    table = pa.Table.from_pylist(list(map(file_columns, rows)), file_schema(own))
    pq.write_table(table, path, compression="zstd")
    return path
