"""A run's table as one side of a comparison: what is read of a question that is the same on both sides."""

from __future__ import annotations

from pathlib import Path

import pytest

from evaltrack.api.compare_sides import side_of_table
from evaltrack.compare.run_info import RunInfo
from evaltrack.metrics.measure import Rules, measure
from evaltrack.records import Question, Response, Row, Signature, Source
from evaltrack.report.html.question_parts import numbers
from evaltrack.rows.reader import stored_rows
from evaltrack.rows.table import TableWriter


def test_an_identical_question_has_the_rank_of_the_passage_that_counted(tmp_path: Path) -> None:
    asked = Question.model_validate(
        {
            "id": "1",
            "question": "How long?",
            "domain": "d",
            "expected_passages": [{"any_of": ["a", "b"]}, {"quote": "thirty days"}],
        }
    )
    sources = (Source(chunk_id="x", text="other"), Source(chunk_id="b", text="b"), Source(chunk_id="c", text="b"))
    response = Response(answer="x", sources=sources)
    made = measure(asked, response, Rules(3), ())
    values = {"scores": made.scores, "passed": made.passed, "finds": made.finds, "duplicates": made.duplicates}
    row = Row.model_validate(
        {"position": 0, "question": asked, "response": response, "started_at": 0, "seconds": 0, **values}
    )
    writer = TableWriter(tmp_path / "rows.parquet", 3)
    writer.add(row)
    writer.close()
    info = RunInfo("r", "r", Signature(golden="g", golden_digest="0", k=3, target="t"), num_questions=1)
    side = side_of_table(info, tmp_path / "rows.parquet")
    brief = side.rows({"1"}, False)["1"]
    assert made.scores["hit"] == 1
    assert numbers(brief, brief)["ranks"] == [2, 2]


def test_the_columns_of_a_side_stand_in_the_order_of_the_golden_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evaltrack.rows.table.WINDOW", 0)
    writer = TableWriter(tmp_path / "rows.parquet", 3)
    positions = [2, 0, 3, 1]
    for position in positions:
        asked = Question(id=f"q{position}", question="How long?", domain="d", expected_chunks=("a",))
        response = Response(sources=(Source(chunk_id="a" if position % 2 else "b"),))
        made = measure(asked, response, Rules(3), ())
        row = Row(
            position=position, question=asked, response=response, started_at=0, seconds=position, scores=made.scores
        )
        writer.add(row)
    writer.close()
    (alone,) = {tuple(each.position for each in stored_rows(tmp_path / "rows.parquet"))}
    assert alone == tuple(positions)
    info = RunInfo("r", "r", Signature(golden="g", golden_digest="0", k=3, target="t"), num_questions=4)
    made = side_of_table(info, tmp_path / "rows.parquet")
    columns = made.frame
    assert list(columns["id"]) == ["q0", "q1", "q2", "q3"]
    assert list(columns["recall_at_k"]) == [0, 1, 0, 1]
    assert list(columns["seconds"]) == [0, 1, 2, 3]
    prints = columns["sources_print"]
    assert (prints[0], prints[1]) == (prints[2], prints[3])
    assert prints[0] != prints[1]
