from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlflow
import pytest

from evaltrack import Question, Response, Source, run_eval
from evaltrack.errors import UsageError
from tests.conftest import REPO
from tests.files import put

QUESTIONS: list[dict[str, Any]] = [
    {"id": "007", "question": "first?", "expected_chunks": ["a"], "expected_answer": "A", "difficulty": "easy"},
    {"id": "b", "question": "second?", "expected_chunks": ["b", "c"], "domain": "other", "difficulty": "hard"},
    {"id": "c", "question": "unknowable?", "expected_chunks": []},
]


def golden(folder: Path, questions: list[dict[str, Any]] = QUESTIONS) -> Path:
    return put(folder / "small.jsonl", questions)


def answers(question: Question, k: int) -> Response:
    if question.negative:
        return Response(answer="I do not know.", sources=())
    return Response(
        answer="an answer", sources=(Source(chunk_id="x"), Source(chunk_id=(question.expected or ("",))[0]))
    )


def test_a_golden_set_that_is_given_twice_is_refused(store_uri: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the golden set is given twice"):
        run_eval(golden(tmp_path), golden="other.jsonl", target=answers, tracking_uri=store_uri)


def test_one_evaluation_is_one_run_with_everything_in_it(store_uri: str, tmp_path: Path) -> None:
    result = run_eval(golden(tmp_path), k=2, target=answers, tracking_uri=store_uri, run_name="mine")
    run = mlflow.MlflowClient(store_uri).get_run(result.run_id)
    assert (run.info.status, run.info.run_name) == ("FINISHED", "mine")
    assert run.data.params["k"] == "2"
    assert run.data.params["target"] == "python:tests.api.test_evaluate:answers"
    metrics, counts = run.data.metrics, result.counts
    assert (metrics["recall_at_k"], counts["recall_at_k"]) == (0.75, 2)
    assert (metrics["precision_at_k"], result.metrics["precision_at_k.max"]) == (0.5, 0.75)
    assert (metrics["mrr"], counts["mrr"]) == (0.5, 2)
    assert (metrics["hit_rate"], counts["hit_rate"], counts["ndcg_at_k"]) == (1, 2, 2)
    assert (metrics["negative_pass_rate"], counts["negative_pass_rate"]) == (1, 1)
    assert (metrics["num_questions"], metrics["num_errors"]) == (3, 0)
    assert (metrics["domain/other/recall_at_k"], result.groups["other"]["recall_at_k"]) == (0.5, (0.5, 1))
    assert result.groups["easy"]["recall_at_k"][0] == 1
    assert run.data.tags["evaltrack.golden"] == "small"
    assert json.loads(run.data.tags["evaltrack.signature"])["k"] == 2
    assert "| Recall@2 | 0.750 | 2 |" in run.data.tags["mlflow.note.content"]
    dataset = run.inputs.dataset_inputs[0].dataset
    assert (dataset.name, len(dataset.digest)) == ("small", 36)
    table = mlflow.MlflowClient(store_uri).load_table(run.info.experiment_id, "per_question.json", [result.run_id])
    assert list(table.columns[:3]) == ["question", "answer", "id"]
    assert list(table["result"]) == ["pass", "pass", "pass"]
    assert result.success
    assert {"recall_at_k", "precision_at_k", "mrr"} <= set(result.data)
    assert [row["id"] for row in result.rows] == ["007", "b", "c"]
    assert result.rows[2]["recall_at_k"] is None
    assert result.rows[2]["unmeasured"]["recall_at_k"] == "the question is a negative"


def test_each_question_has_a_trace_that_pairs_by_its_text(store_uri: str, tmp_path: Path) -> None:
    """A trace's input is the question alone; where a text is asked twice the id stands with it."""
    questions = [*QUESTIONS, {**QUESTIONS[0], "id": "again"}]
    result = run_eval(golden(tmp_path, questions), target=answers, tracking_uri=store_uri)

    mlflow.set_tracking_uri(store_uri)
    traces = mlflow.search_traces(locations=[result.experiment_id], run_id=result.run_id, return_type="list")
    inputs = {t.info.client_request_id: t.data.spans[0].inputs for t in traces}
    assert inputs == {
        "007": {"question": "first?", "id": "007"},
        "again": {"question": "first?", "id": "again"},
        "b": {"question": "second?"},
        "c": {"question": "unknowable?"},
    }
    trace = next(t for t in traces if t.info.client_request_id == "b")
    assert [span.name for span in trace.data.spans] == ["question", "retrieve"]
    assessed = {a.name: a.value for a in trace.info.assessments}
    assert assessed["recall_at_k"] == 0.5
    assert assessed["passed"] == "yes"
    assert assessed["expected_chunks"] == ["b", "c"]


@pytest.mark.parametrize(
    "name", ["food.jsonl", "travel.jsonl", "cdc.jsonl", "construction.jsonl", "business.jsonl", "wikipedia.json"]
)
def test_the_showcase_sets_are_good_but_not_perfect_for_bm25(store_uri: str, name: str) -> None:
    result = run_eval(REPO / "golden" / name, tracking_uri=store_uri, traces="off")

    assert result.totals["num_errors"] == 0
    assert result.totals["num_questions"] >= 20
    assert 2 <= result.totals["num_negatives"] <= 3
    assert 0.7 <= result.metrics["recall_at_k"] <= 0.95
    assert 0.65 <= result.metrics["mrr"] <= 0.9
    assert result.metrics["negative_pass_rate"] >= 0.25


def test_a_conversation_is_in_its_row_and_on_the_page(store_uri: str, tmp_path: Path) -> None:
    turns = [{"role": "user", "content": "The fee?"}, {"role": "assistant", "content": "<b>80</b>"}]
    asked = [
        {"id": "t", "question": "one?", "history": turns, "expected_chunks": ["a"]},
        {"id": "p", "question": "plain?", "expected_chunks": ["a"]},
    ]
    seen: list[list[str]] = []

    def ask(messages: list[dict[str, str]], k: int) -> list[str]:
        seen.append([each["content"] for each in messages])
        return ["a"]

    result = run_eval(golden(tmp_path, asked), target=ask, judge="none", tracking_uri=store_uri, concurrency=1)

    assert seen == [["The fee?", "<b>80</b>", "one?"], ["plain?"]]
    assert [row["history"] for row in result.rows] == [turns, []]
    page = mlflow.artifacts.load_text(f"runs:/{result.run_id}/report.html")
    assert "\\u003cb\\u003e80\\u003c/b\\u003e" in page
    assert "<b>80</b>" not in page
