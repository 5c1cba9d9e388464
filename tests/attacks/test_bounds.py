"""Answers of any size, and output without end: each is bounded in memory, and an error row that names the bound."""

from __future__ import annotations

import resource
import sys
from pathlib import Path

import pytest

from evaltrack.errors import UsageError
from evaltrack.records import Question, Response, Row, Source
from evaltrack.records import row as records_row
from evaltrack.targets import open_target
from evaltrack.tracking import rows
from evaltrack.tracking.rows import TableWriter, read_table
from tests.actors import gathered
from tests.files import put

QUESTION = Question(id="1", question="Why?", domain="d", expected_chunks=("a",))
TOO_LONG = {"answer": "x" * 50_000_000}
TOO_MANY = {"sources": [f"c{number}" for number in range(100_000)]}

MOST_MEGABYTES = 400
"""By which the peak of memory may grow where a target sends without end."""


def row_of(name: str) -> Row:
    (row,) = gathered([QUESTION], open_target(name), timeout=60)
    return row


@pytest.mark.parametrize("kind", ["command", "recorded"])
@pytest.mark.parametrize(
    ("returned", "bound"), [(TOO_LONG, "16,777,216"), (TOO_MANY, "10,000")], ids=["50 MB", "100,000 sources"]
)
def test_a_response_is_bounded(kind: str, returned: dict[str, object], bound: str, tmp_path: Path) -> None:
    saved = put(tmp_path / "response.jsonl", [{"id": "1", **returned}])
    if kind == "recorded":  # found when the file is read, before anything runs
        with pytest.raises(UsageError, match=rf"response\.jsonl:1: .*{bound}"):
            row_of(f"recorded:{saved}")
        return
    row = row_of(f"command:sh -c 'cat {saved}' {{id}}")
    assert row.error
    assert bound in row.error
    assert len(row.error) < 500


def megabytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def test_what_a_function_prints_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    loop = "    for _ in range(100):\n        os.write(1, b'x' * 1_000_000)\n"
    put(tmp_path / "flooding.py", f"import os\n\ndef ask(question):\n{loop}    return ['a']\n")
    before = megabytes()
    with Path("/dev/null").open("w") as nowhere:
        monkeypatch.setattr(sys, "stderr", nowhere)
        row = row_of("python:flooding:ask")
        monkeypatch.undo()
    assert row.scores["hit"] == 1.0
    assert megabytes() - before < MOST_MEGABYTES


def test_long_rows_do_not_wait_for_a_slow_question(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "GROUP_BYTES", 2_000_000)
    path = tmp_path / "rows.parquet"
    writer, response = TableWriter(path), Response(answer="x" * 1_000_000, sources=(Source(chunk_id="a"),))

    def row(position: int, response: Response | None) -> Row:
        question = QUESTION.model_copy(update={"id": str(position)})
        return records_row.row_of(question, response or Response(), 5, position=position, trial=1)

    for position in range(1, 40):
        writer.add(row(position, response))
    assert writer._characters <= 2_000_000
    writer.add(row(0, None))
    writer.close()
    assert sorted(int(row["id"]) for row in read_table(path)) == list(range(40))
