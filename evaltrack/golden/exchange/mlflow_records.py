"""A question as a record of an MLflow evaluation dataset, and back.

`inputs` is what `mlflow.genai.evaluate` passes to the function that answers, `expectations` has the names that MLflow's
own scorers read, and every other field is a tag: text as it is, anything else as JSON.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from evaltrack.golden.lines import checked_question, line_of
from evaltrack.records import Question

RESPONSE, TOOL_CALLS = "expected_response", "expected_tool_calls"
SHARED = ("expected_chunks", "expected_sources", "expected_passages")
"""Expectations that no scorer of MLflow reads; they have the names of a golden line."""

TEXT_TAGS = ("id", "domain", "difficulty", "category", "notes")
JSON_TAGS = ("draft", "grades", "relevant_grade", "metadata", "history")
OWN_EXPECTATIONS = frozenset((RESPONSE, TOOL_CALLS, *SHARED))
OWN_TAGS = frozenset((*TEXT_TAGS, *JSON_TAGS))

FORMER_RESPONSE = "expected_answer"
"""The name of `expected_response` in datasets that runs registered before."""


@dataclass(frozen=True)
class DatasetRecord:
    """A record of an MLflow evaluation dataset.

    Attributes:
        inputs: What identifies it in its dataset: MLflow holds equal inputs once.
        expectations: What is expected, by name.
        tags: Further fields of the question, and what others noted.
        key: MLflow's id of it; empty of one that is to be written.
        created: When it was made, in milliseconds since 1970.
    """

    inputs: Mapping[str, Any]
    expectations: Mapping[str, Any] = field(default_factory=dict)
    tags: Mapping[str, Any] = field(default_factory=dict)
    key: str = ""
    created: int = 0

    @property
    def identity(self) -> str:
        """The inputs in one form."""
        return json.dumps(self.inputs, sort_keys=True)

    @property
    def text(self) -> str | None:
        """What is asked: the input `question`, else the only text among the inputs; None where there is none."""
        return self.inputs[name] if (name := text_name(self.inputs)) else None


def text_name(inputs: Mapping[str, Any]) -> str | None:
    """The name of the input that holds the question."""
    if isinstance(inputs.get("question"), str):
        return "question"
    texts = [name for name, value in inputs.items() if isinstance(value, str)]
    return texts[0] if len(texts) == 1 else None


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


def question_of(record: DatasetRecord, key: str, domain: str) -> Question | list[str]:
    """The question that a record holds, or all that is wrong with it.

    Args:
        record: One that evaltrack wrote, or a person.
        key: The question's id.
        domain: Its domain where the record has none.
    """
    if record.text is None:
        return ["its inputs hold no `question`, nor a single text; give it one"]
    held, problems = record.expectations, list[str]()
    line: dict[str, object] = {name: held[name] for name in SHARED if held.get(name) is not None}
    answer = held.get(RESPONSE, held.get(FORMER_RESPONSE))
    calls = held.get(TOOL_CALLS)
    line |= {"id": key, "question": record.text, "domain": domain}
    line |= {name: record.tags[name] for name in TEXT_TAGS[1:] if record.tags.get(name) is not None}
    if answer is not None:
        line["expected_answer"] = answer
    if calls is not None:
        line |= _tools(calls)
    for name in JSON_TAGS:
        if (text := record.tags.get(name)) is not None:
            try:
                line[name] = json.loads(text) if isinstance(text, str) else text
            except (ValueError, RecursionError):
                problems.append(f"the tag `{name}` is not JSON; correct or remove it")
    checked = checked_question(line)
    return problems + (checked if isinstance(checked, list) else []) or checked


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


def foreign_names(record: DatasetRecord) -> Sequence[str]:
    """The expectations of a record for which a golden line has no field; they stay in MLflow."""
    return [name for name in record.expectations if name not in OWN_EXPECTATIONS and name != FORMER_RESPONSE]


def merged(old: DatasetRecord, new: DatasetRecord) -> tuple[DatasetRecord, bool]:
    """A record with what a question holds now, and whether MLflow must write it anew instead of merging it.

    MLflow adds expectations and tags to a record and removes none, and equal inputs are the same record. What others
    noted stays.
    """
    expectations = {name: value for name, value in old.expectations.items() if name in foreign_names(old)}
    tags = {name: value for name, value in old.tags.items() if name not in OWN_TAGS}
    made = DatasetRecord(new.inputs, {**expectations, **new.expectations}, {**tags, **new.tags}, old.key, old.created)
    lost = old.expectations.keys() - made.expectations.keys() or old.tags.keys() - made.tags.keys()
    return made, bool(lost) or old.identity != made.identity


def version_of(question: Question) -> str:
    """SHA-256 (16 hex digits) of all that a golden line says, notes and labels too; not of its id."""
    line = {name: value for name, value in line_of(question).items() if name != "id"}
    return hashlib.sha256(json.dumps(line, sort_keys=True).encode()).hexdigest()[:16]
