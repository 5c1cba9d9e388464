"""Artifacts of a few kilobytes that stand for gigabytes: refused or cut, by a reader that stays small."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import mlflow
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evaltrack import RunResult, run_eval
from evaltrack.api.report_html import stored_result
from evaltrack.errors import TrackingError
from evaltrack.records import Question, Response, Source
from evaltrack.records.row import row_of
from evaltrack.tracking.find_runs import find_evaluation
from evaltrack.tracking.rows import file_columns, file_schema
from evaltrack.tracking.store import connect
from tests.files import data, put

MEGABYTE = 1_000_000


def _rows(n: int) -> pa.Table:
    question = Question(id="0", question="?", expected_chunks=("a",), domain="d")
    response = Response(answer="so", sources=(Source(chunk_id="a", text="t"),))
    flat = file_columns(row_of(question, response, 5, scores={"recall_at_k": 1.0}, passed=True))
    return pa.Table.from_pylist([flat | {"id": str(i), "position": i} for i in range(n)], schema=file_schema())


def _packed(path: Path, table: pa.Table, name: str, array: pa.Array, **options: Any) -> None:
    """Write the table with another column."""
    pq.write_table(table.set_column(table.column_names.index(name), name, array), path, compression="zstd", **options)


def _repeated(n: int, text: str) -> pa.Array:
    places = pa.array([0]).take(pa.nulls(n, pa.int32()).fill_null(0)).cast(pa.int32())
    return pa.DictionaryArray.from_arrays(places, pa.array([text]))


def repeated_text(path: Path) -> None:
    _packed(path, _rows(2000), "answer", _repeated(2000, "x" * 5 * MEGABYTE))


def repeated_id(path: Path) -> None:
    _packed(path, _rows(2000), "domain", _repeated(2000, "x" * 5 * MEGABYTE))


def repeated_source(path: Path) -> None:
    text = '[{"text": "' + "x" * 5 * MEGABYTE + '"}]'
    _packed(path, _rows(2000), "sources", _repeated(2000, text))


def many_rows(path: Path) -> None:
    group = pa.table({"id": _repeated(2 * MEGABYTE, "a")})
    with pq.ParquetWriter(path, group.schema, compression="zstd") as writer:
        for _ in range(20):
            writer.write_table(group, row_group_size=2 * MEGABYTE)


def long_list(path: Path) -> None:
    _packed(path, _rows(1), "sources", pa.array(["[" + "{}," * 30 * MEGABYTE + "{}]"]))


def wide_texts(path: Path) -> None:
    texts = pa.array([f"{i}" + "x" * (MEGABYTE // 2) for i in range(500)])
    _packed(path, _rows(500), "answer", texts, use_dictionary=False)


BOMBS = (repeated_text, repeated_id, repeated_source, many_rows, long_list, wide_texts)
READ = """
import re, sys
from pathlib import Path
from evaltrack.errors import TrackingError
from evaltrack.tracking.rows import read_table

for path in map(Path, sys.argv[1:]):
    try:
        said = f"read, no text above {max(len(row['answer'] or '') for row in read_table(path))}"
    except TrackingError as error:
        said = str(error)
    print(int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024, said)
"""
MEMORY_MB = 800
"""The files stand for up to 10 GB. How much of 470 MB for one text of 90 MB is held twice varies."""


def test_a_bomb_takes_little_memory(tmp_path: Path) -> None:
    files = [tmp_path / f"{make.__name__}.parquet" for make in BOMBS]
    for path, make in zip(files, BOMBS, strict=True):
        make(path)
        assert path.stat().st_size < 1_000_000
    read = subprocess.run([sys.executable, "-c", READ, *files], capture_output=True, text=True, timeout=120)
    assert read.returncode == 0, read.stderr
    for path, line in zip(files, read.stdout.splitlines(), strict=True):
        memory, said = line.split(" ", 1)
        assert int(memory) < MEMORY_MB, (path.name, said)
        assert "was not written by evaltrack" in said or re.search(r"no text above (200000|2)$", said), (path, said)


def evaluated(folder: Path, store_uri: str, count: int) -> RunResult:
    questions = [{"id": n, "question": f"What is {n}?", "expected_chunks": ["a"]} for n in range(count)]
    golden = put(folder / "small.jsonl", questions)
    return run_eval(golden, target=lambda question, k: ["a"], judge="none", tracking_uri=store_uri, traces="off")


def test_a_summary_is_read_to_the_letter(store_uri: str, tmp_path: Path) -> None:
    run = evaluated(tmp_path, store_uri, 12)
    store = connect(store_uri)
    summary = mlflow.artifacts.load_dict(f"runs:/{run.run_id}/summary.json")
    assert stored_result(store, find_evaluation(store, run.run_id)).metrics == run.metrics
    for spoilt in data("attacks.json")["spoilt_summaries"]:
        store.client.log_text(run.run_id, json.dumps(summary | spoilt), "summary.json")
        with pytest.raises(TrackingError, match=f"is damaged or of another version: {next(iter(spoilt))}"):
            stored_result(store, find_evaluation(store, run.run_id))
