from __future__ import annotations

from pathlib import Path

from evaltrack.api.compare_sides import side_of_table
from evaltrack.metrics.measure import Rules, measure
from evaltrack.records import Question, Response, Row, Signature, Source
from evaltrack.records.run import Run
from evaltrack.report.html.question_parts import numbers
from evaltrack.tracking.rows import TableWriter


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
    info = Run("r", "r", Signature(golden="g", golden_digest="0", k=3, target="t"), num_questions=1)
    side = side_of_table(info, tmp_path / "rows.parquet")
    brief = side.rows({"1"}, False)["1"]
    assert made.scores["hit"] == 1
    assert numbers(brief, brief)["ranks"] == [2, 2]
