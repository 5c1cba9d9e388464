"""What MLflow shows beside a trace: three scores, and what was expected."""

from __future__ import annotations

from typing import Any

from evaltrack.metrics.measure import Rules, measure
from evaltrack.metrics.rubric import RubricWeights
from evaltrack.records import Failure, Question, Row, Verdict
from evaltrack.records.stored_row import StoredRow, stored_row
from evaltrack.tracking.traces import assessments_of
from tests.compared import question
from tests.compared import row as answered
from tests.metrics.test_catalogue import RESPONSE, observations, verdicts


def feedback(row: StoredRow) -> list[tuple[str, object]]:
    """Names and values of what is no expectation, as MLflow's tables order them."""
    shown = [each for each in assessments_of(row, "tr-1") if not each.name.startswith("expected_")]
    return sorted((each.name, each.value) for each in shown)


def row_of(seen: tuple[Verdict, ...], rules: Rules, **fields: Any) -> StoredRow:
    asked = Question.model_validate({"id": "1", "question": "?", "domain": "d"} | fields)
    made = measure(asked, RESPONSE, rules, seen)
    scored = {name: getattr(made, name) for name in ("scores", "unmeasured", "passed", "reasoned")}
    timing = {"position": 0, "started_at": 0.0, "seconds": 0.1}
    return stored_row(Row(question=asked, response=RESPONSE, verdicts=seen, **scored, **timing), rules.k)


def test_a_judged_answer_has_three() -> None:
    row = row_of(verdicts(0.0), Rules(3), expected_chunks=["a", "b"], expected_answer="Paris")
    assert feedback(row) == [("judge_score", 0.9), ("judge_score", 0.9), ("passed", "yes"), ("recall_at_k", 1.0)]
    assert [each.source.source_id for each in assessments_of(row, "tr-1") if each.name == "judge_score"] == [
        "one",
        "two",
    ]
    expected = {each.name: each.value for each in assessments_of(row, "tr-1") if each.name.startswith("expected_")}
    assert expected == {"expected_chunks": ["a", "b"], "expected_answer": "Paris"}


def test_a_negative_says_what_its_judge_saw() -> None:
    """It has no judge's score: what the judge said of declining is why it passed or not."""
    row = row_of(verdicts(0.1)[:1], Rules(3), expected_chunks=[])
    (passed,) = (each for each in assessments_of(row, "tr-1") if each.name == "passed")
    assert (passed.value, passed.rationale) == ("yes", "negative: the target declined\n\nbecause")
    assert feedback(row) == [("passed", "yes")]


def test_reasoning_has_its_own_three() -> None:
    row = row_of(observations(3), Rules(reasoning=RubricWeights()))
    (score,) = (each for each in assessments_of(row, "tr-1") if each.name == "reasoning_score")
    assert [name for name, _ in feedback(row)] == ["coupling_gap", "passed", "reasoning_score"]
    assert (score.value, score.rationale) == (row.scores["reasoning_score"], "because")
    (passed,) = (each for each in assessments_of(row, "tr-1") if each.name == "passed")
    assert passed.rationale == "the reasoning scores 0 of 100, Hard Fail: reject, escalate"


def test_what_failed_says_why() -> None:
    row = answered(question("a"), Failure(kind="target_error", message="no route"))
    (passed,) = (each for each in assessments_of(row, "tr-1") if each.name == "passed")
    assert "no route" in str(passed.error)
    assert "recall_at_k" not in {each.name for each in assessments_of(row, "tr-1")}


def test_without_retrieval_the_judge_decides() -> None:
    (passed,) = (each for each in assessments_of(row_of(verdicts(0.0), Rules(3)), "tr-1") if each.name == "passed")
    assert passed.rationale == "its judge alone decides: retrieval was not measured"
