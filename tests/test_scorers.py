"""The scores of evaltrack as scorers of MLflow: for each question the values of `evaltrack run`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mlflow
import pytest

import evaltrack.scorers as own
from evaltrack import open_golden, run_eval
from evaltrack.errors import UsageError
from evaltrack.golden.reader import expectations_of

from .files import data

NAMES = {
    "recall_at_5": "recall_at_k",
    "precision_at_5": "precision_at_k",
    "mrr_at_5": "reciprocal_rank",
    "hit_rate_at_5": "hit",
    "ndcg_at_5": "ndcg_at_k",
    "context_precision_at_5": "context_precision",
}
"""Scores that have another name there than in a row."""

WORDS = ["exact_match", "token_f1", "contains"]
OTHERS = ["tool_order", "tool_arguments", "context_precision"]

ANSWERED = data("metrics.json")["answers_for_scorers"]
"""What is expected, and what came back: sources as ids and texts."""


def written(folder: Path) -> tuple[Path, Path, list[dict[str, Any]]]:
    """The same as a golden set, as recorded answers, and as MLflow's data."""
    golden, answers = folder / "set.jsonl", folder / "answers.jsonl"
    lines, responses = [], []
    for number, (expected, came) in enumerate(ANSWERED):
        sources = (
            {"sources": [{"chunk_id": i, "text": text} for i, text in came["sources"]]} if "sources" in came else {}
        )
        lines.append({"id": number, "question": f"What of {number}?", "domain": "d", **expected})
        responses.append({"id": number, **came, **sources})
    golden.write_text("".join(json.dumps(line) + "\n" for line in lines))
    answers.write_text("".join(json.dumps(line) + "\n" for line in responses))
    records = []
    for question, response in zip(open_golden(golden), responses, strict=True):
        outputs = {name: value for name, value in response.items() if name != "id"}
        inputs, expectations = {"question": question.question}, expectations_of(question)
        records.append({"inputs": inputs, "outputs": outputs, "expectations": expectations})
    return golden, answers, records


@pytest.mark.filterwarnings("ignore")  # MLflow warns of itself and of pandas
def test_mlflow_gives_the_values_of_all_that_is_built_in(
    store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of words, tools, patterns and schemas: for each question those of a run, to 1e-12, or none."""
    monkeypatch.setenv("MLFLOW_GENAI_EVAL_MAX_WORKERS", "1")  # SQLite has one writer
    golden, answers, records = written(tmp_path)
    schema = tmp_path / "schema.json"
    schema.write_text('{"type": "object"}')
    specs = [*WORDS, *OTHERS, r"cites=regex:\[\d\]", f"json_schema:{schema}"]
    result = run_eval(
        golden, target=f"recorded:{answers}", judge="none", traces="off", scores=specs, tracking_uri=store_uri
    )
    of_sources = (own.RecallAtK, own.PrecisionAtK, own.MRR, own.HitRate, own.NDCGAtK, own.ContextPrecision)
    of_answers = (own.ExactMatch, own.TokenF1, own.Contains)
    scorers = [make() for make in (*of_sources, *of_answers, own.NegativePass, own.ToolOrder, own.ToolArguments)]
    scorers += [own.Regex(r"\[\d\]", "cites"), own.JSONSchema(schema)]
    mlflow.set_tracking_uri(store_uri)
    try:
        table = mlflow.genai.evaluate(data=records, scorers=scorers).result_df
    finally:
        mlflow.set_tracking_uri(None)
    assert table is not None
    names = {scorer.name: NAMES.get(scorer.name, scorer.name) for scorer in scorers}
    values = {
        (row["request"]["question"], names[each["assessment_name"]]): each["feedback"].get("value")
        for _, row in table.iterrows()
        for each in row["assessments"]
        if each["assessment_name"] in names
    }
    expected = {(row["question"], name): row[name] for row in result.rows for name in names.values()}
    assert len(expected) == 5 * 14
    assert values == pytest.approx(expected, abs=1e-12)
    assert sum(value is not None for value in expected.values()) > 30
    assert expected["What of 0?", "tool_arguments"] == 0.5


@pytest.mark.parametrize(("outputs", "value"), data("metrics.json")["outputs_for_mlflow"])
def test_outputs_are_what_a_target_returns(outputs: object, value: float | str) -> None:
    made = own.HitRate(2)(inputs={"q": "what?"}, outputs=outputs, expectations={"expected_chunks": ["a"]})
    assert made.name == "hit_rate_at_2"
    if isinstance(value, str):
        assert made.value is None
        assert value in made.error.error_message
    else:
        assert made.value == value


@pytest.mark.parametrize(("inputs", "expectations", "why"), data("metrics.json")["questions_that_cannot_be_scored"])
def test_questions_that_cannot_be_scored(inputs: Any, expectations: Any, why: str) -> None:
    made = own.RecallAtK()(inputs=inputs, outputs=["a"], expectations=expectations)
    assert why in made.error.error_message


def test_tools() -> None:
    scorer = own.ToolsCalled()
    expectations = {"expected_tool_calls": [{"name": "search"}]}
    calls = {"answer": "A", "tool_calls": [{"name": "search"}]}
    assert scorer(inputs={"question": "?"}, outputs=calls, expectations=expectations).value == 1.0
    assert scorer(inputs={"question": "?"}, outputs={"answer": "A"}, expectations=expectations).value == 0.0
    none = scorer(inputs={"question": "?"}, outputs={"answer": "A"}, expectations={})
    assert none.error.error_message == "the question has no such score"


@pytest.mark.parametrize("k", [0, 1001, True, "5"])
def test_k(k: Any) -> None:
    with pytest.raises(UsageError, match="write a whole number from 1 to 1,000"):
        own.RecallAtK(k)


def test_other_names() -> None:
    with pytest.raises(AttributeError, match="no attribute 'Rouge'"):
        _ = own.Rouge
