"""A question as a golden line and as a record of an MLflow dataset, and back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaltrack.golden.importing.layouts import question_of
from evaltrack.golden.reader import checked_question, expectations_of, line_of
from evaltrack.records import Question
from tests.files import data


@pytest.mark.parametrize(
    "line",
    [
        dict(data("golden.json")["all_fields"]),
        {"expected_chunks": []},
        {"expected_chunks": {"a": 2, "b": 0, "5": 1}, "relevant_grade": 2},
        {"expected_sources": {"A title": 1, "Another": 0}, "notes": ""},
        {"expected_chunks": ["a", "b"], "grades": {"b": 1, "a": 1}},
        {"expected_sources": ["a"], "grades": {"c": 3}, "expected_passages": [{"any_of": ["a", "b"]}]},
    ],
)
def test_every_field_comes_back(line: dict[str, Any]) -> None:
    question = checked_question({"id": 1, "question": "q?", "domain": "d", **line})
    assert isinstance(question, Question)
    back = checked_question(json.loads(json.dumps(line_of(question))))
    assert isinstance(back, Question)
    assert (back, back.digest) == (question, question.digest)


def read(**line: object) -> Question:
    question = checked_question({"id": "1", "question": "q?", "domain": "mlflow", **line})
    assert isinstance(question, Question)
    return question


def test_a_record_has_the_names_of_mlflows_scorers_and_comes_back() -> None:
    question = read(expected_tools=["search", "page"], expected_arguments=[{}, {"title": "Kea"}])
    calls = [{"name": "search"}, {"name": "page", "arguments": {"title": "Kea"}}]
    assert expectations_of(question) == {"expected_tool_calls": calls}
    assert question_of({"question": "q?"}, expectations_of(question)) == question
    graded = {"expected_answer": "yes", "expected_tools": ["search"], "expected_chunks": {"a": 2, "b": 0}}
    expectations = {"expected_response": "yes", "expected_tool_calls": calls[:1], "expected_chunks": {"a": 2, "b": 0}}
    assert expectations_of(read(**graded)) == expectations


@pytest.mark.parametrize(("inputs", "expectations", "problem"), data("golden.json")["bad_records"])
def test_a_bad_record_says_what_is_wrong(inputs: dict[str, Any], expectations: dict[str, Any], problem: str) -> None:
    problems = question_of(inputs, expectations)
    assert isinstance(problems, list)
    assert problem in problems[0]


def test_a_person_may_name_the_input_otherwise() -> None:
    question = question_of({"query": "q?", "n": 1}, {"expected_response": "a", "guidelines": "g"})
    assert isinstance(question, Question)
    assert (question.question, question.expected_answer) == ("q?", "a")
