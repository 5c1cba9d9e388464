"""A question as a record of an MLflow evaluation dataset.

`inputs` is what `mlflow.genai.evaluate` passes to the function that answers, `expectations` has the names that MLflow's
own scorers read, and every other field is a tag: text as it is, anything else as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evaltrack.golden.lines import checked_question, line_of
from evaltrack.records import Question

RESPONSE, TOOL_CALLS = "expected_response", "expected_tool_calls"
SHARED = ("expected_chunks", "expected_sources", "expected_passages")
"""Expectations that no scorer of MLflow reads; they have the names of a golden line."""

TEXT_TAGS = ("id", "domain", "difficulty", "category", "notes")
JSON_TAGS = ("draft", "grades", "relevant_grade", "metadata", "history")


@dataclass(frozen=True)
class DatasetRecord:
    """A record of an MLflow evaluation dataset.

    Attributes:
        inputs: What identifies it in its dataset: MLflow holds equal inputs once.
        expectations: What is expected, by name.
        tags: Further fields of the question.
    """

    inputs: Mapping[str, Any]
    expectations: Mapping[str, Any] = field(default_factory=dict)
    tags: Mapping[str, Any] = field(default_factory=dict)


def record_of(question: Question, inputs: Mapping[str, Any] | None = None) -> DatasetRecord:
    """The record of a question.

    Args:
        question: What it holds.
        inputs: Those of the record; None takes the text alone.
    """
    line = line_of(question)
    expectations = {name: line[name] for name in SHARED if name in line}
    if question.expected_answer is not None:
        expectations[RESPONSE] = question.expected_answer
    if question.expected_tools:
        expectations[TOOL_CALLS] = _expected_calls(question)
    tags = {name: line[name] for name in TEXT_TAGS if name in line}
    tags |= {name: json.dumps(line[name], ensure_ascii=False) for name in JSON_TAGS if name in line}
    return DatasetRecord({"question": question.question} if inputs is None else inputs, expectations, tags)


def question_of(inputs: Mapping[str, Any], expectations: Mapping[str, Any]) -> Question | list[str]:
    """The question of a record, without its tags, or all that is wrong with it.

    What is asked is the input `question`, or the only text among the inputs.
    """
    texts = [value for value in inputs.values() if isinstance(value, str)]
    text = inputs.get("question") or (texts[0] if len(texts) == 1 else None)
    if not isinstance(text, str):
        return ["its inputs hold no `question`, nor a single text; give it one"]
    line: dict[str, object] = {"id": "1", "domain": "mlflow", "question": text}
    line |= {name: expectations[name] for name in SHARED if expectations.get(name) is not None}
    if (answer := expectations.get(RESPONSE)) is not None:
        line["expected_answer"] = answer
    if (calls := expectations.get(TOOL_CALLS)) is not None:
        line |= _tools(calls)
    return checked_question(line)


def _expected_calls(question: Question) -> list[dict[str, Any]]:
    """Each expected tool as MLflow writes it, with its arguments where there are any."""
    arguments = question.expected_arguments or ({},) * len(question.expected_tools)
    return [
        {"name": name, **({"arguments": dict(each)} if each else {})}
        for name, each in zip(question.expected_tools, arguments, strict=True)
    ]


def _tools(calls: object) -> dict[str, object]:
    """Names and arguments of expected calls; whatever else stands there, for the check to refuse."""
    if not isinstance(calls, list):
        return {"expected_tools": calls}
    names = [call.get("name") if isinstance(call, dict) else call for call in calls]
    arguments = [(call.get("arguments") or {}) if isinstance(call, dict) else {} for call in calls]
    return {"expected_tools": names} | ({"expected_arguments": arguments} if any(arguments) else {})
