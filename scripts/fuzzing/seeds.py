"""Seeds of inputs: the project's own files, and small ones of each kind."""

from __future__ import annotations

import json
import tempfile
from functools import cache
from pathlib import Path

from evaltrack.records import Question, Response, Row, Signature, Source
from evaltrack.records.row import row_of
from evaltrack.report.run_text import RUN_SCHEMA
from evaltrack.tracking.rows import TableWriter, columns_of
from scripts.fuzzing.reader import REPO

SIGNATURE = Signature(golden="g", golden_digest="d", k=5, target="t").model_dump_json()
RECORDED = (
    b'{"id": 1, "answer": "x", "sources": ["a", {"id": 2, "score": 0.5}], "usage": {"prompt_tokens": 1, '
    b'"completion_tokens": 2}, "tool_calls": [{"name": "t", "arguments": {"a": [1]}}]}\n{"id": "q1"}\n'
)
TREC = b"1 Q0 doc-a 1 12.5 run\n1 Q0 doc-b 2 11.0 run\n2 Q0 doc-a 0 3 run\n"
ANSWERS = b'{"id": 1, "accuracy": 1, "completeness": 0.5, "relevance": 1.0, "overall_score": 0.9, "reasoning": "r"}\n'
TOML = b'[run]\nk = 5\ntarget = "bm25:docs"\njudge = ["none"]\n[golden.lint]\nstrict = true\n'
TABLES_OF_TOML = [
    b"[tool.evaltrack.run]\nk = 5\n", b"[tool]\nevaltrack = 5  # [tool.evaltrack", b"tool = 1  # [tool.evaltrack",
    b"[golden]\nlint = 5\n", b'[run]\nk = [[1]]\njudge = {a = 1}\n[run.target]\nx = 1979-05-27T07:32:00Z\n',
    b'[golden.lint]\nstrict = "maybe"\ncorpus = 5\n[compare]\nmax-drop = "mrr=1%"\n',
    b"[run]\nalpha = nan\nk = 1e5\n",
    b'[run]\ntimeout = -inf\nrequire = ["x"]\nredact = "("\ntarget-option = "a"\nconcurrency = 0\ntrials = 1\n',
]  # fmt: skip


def small_rows() -> list[Row]:
    """Four rows of a run."""
    return [
        row_of(
            Question(id=str(n), question=f"Question {n}?", domain="d", difficulty="easy", expected_chunks=("a",)),
            Response(answer="x", sources=(Source(chunk_id="a", text="t"),)),
            5,
            position=n,
            scores={"recall_at_k": 1.0, "reciprocal_rank": n / 3, "hit": 1.0},
            passed=n != 1,
            seconds=1,
        )
        for n in range(4)
    ]


def saved_run() -> bytes:
    """A small saved run."""
    signature = json.loads(SIGNATURE)
    head = {"schema": RUN_SCHEMA, "signature": signature, "totals": {"num_questions": 4, "num_errors": 0}}
    return json.dumps({**head, "rows": list(map(columns_of, small_rows()))}).encode()


@cache
def good_table() -> bytes:
    """The rows of a run as its Parquet file."""
    with tempfile.TemporaryDirectory(prefix="evaltrack-fuzz-") as folder:
        path = Path(folder) / "rows.parquet"
        writer = TableWriter(path)
        for row in small_rows():
            writer.add(row)
        writer.close()
        return path.read_bytes()


def first(path: str, size: int = 6000) -> bytes:
    """Whole lines from the start of a file of the project's own."""
    raw = (REPO / "golden" / path).read_bytes()
    return raw if len(raw) <= size else raw[: raw.rfind(b"\n", 0, size) + 1]
