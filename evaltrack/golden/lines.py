"""Converts questions to lines of a golden file and to records of MLflow evaluation datasets, and back, with checks.

In a record, `mlflow.genai.evaluate` passes `inputs` to the function that answers, and `expectations` has the names
that MLflow's own scorers read. Every other field is a tag: text is stored unchanged, anything else as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from evaltrack.records import Passage, Question, Turn
from evaltrack.records.finding_words import finding_words, id_words
from evaltrack.records.json_text import MAX_DEPTH, kind_of, too_deep
from evaltrack.records.question import EXPECTATIONS

FIELDS = tuple(Question.model_fields)
FIELDS_WITHIN = {"expected_passages": tuple(Passage.model_fields), "history": tuple(Turn.model_fields)}
LISTS = {
    "expected_chunks": 'chunk ids, like ["a", "b"]',
    "expected_sources": 'titles, like ["a", "b"]',
    "expected_passages": 'passages, like [{"quote": "the words that answer it"}]',
    "expected_tools": 'names, like ["a", "b"]',
    "expected_arguments": 'objects, one for each tool, like [{"query": "kea"}, {}]',
    "history": 'turns, like [{"role": "user", "content": "the text"}]',
}


def checked_question(value: dict[str, object]) -> Question | list[str]:
    """Return the question in a JSON object, or a list of all problems with it. A `domain` is required."""
    if reason := _graded_negative(value):
        return [reason]
    try:
        question = Question.model_validate(value)
    except ValidationError as error:
        details = error.errors(include_url=False)
        return [_explain(detail) for detail in details]
    free = {"metadata": question.metadata, "expected_arguments": list(question.expected_arguments)}
    deep = [name for name, value in free.items() if too_deep(value)]
    return [f"`{name}` is nested deeper than {MAX_DEPTH}; make it flatter" for name in deep] or question


def line_of(question: Question) -> dict[str, object]:
    """Return the JSON object of a question: ids as text, without fields that have their default value.

    Graded expectations are written as an object of ids and grades.
    """
    line: dict[str, object] = question.model_dump(mode="json", exclude_defaults=True)
    relevant = [key for key, grade in question.grades.items() if grade >= question.relevant_grade]
    for name in ("expected_chunks", "expected_sources"):
        if relevant and line.get(name) == relevant and "grades" in line:
            line[name] = line.pop("grades")
    return line


def _graded_negative(value: dict[str, object]) -> str:
    """Return the reason that the grades contradict an empty list; empty if they do not."""
    grades, least = value.get("grades"), value.get("relevant_grade", 1)
    if not isinstance(grades, dict) or not isinstance(least, int):
        return ""
    empty = next((name for name in EXPECTATIONS if value.get(name) == []), None)
    relevant = next((key for key, grade in grades.items() if isinstance(grade, int) and grade >= least), None)
    if empty is None or relevant is None:
        return ""
    cure = f"write the grades instead of the list, or remove `{relevant}` from them"
    return f"`grades` says that `{relevant}` is relevant, but `{empty}` is empty, as of a negative question; {cure}"


def _explain(detail: ErrorDetails) -> str:
    """Return one pydantic error as `field: problem; fix`."""
    place, kind = detail["loc"], detail["type"]
    name = str(place[0]) if place else ""
    if kind == "missing" and len(place) == 1:
        return f"`{name}` is missing; every question needs one"
    if name in LISTS and len(place) == 1:
        return _explain_list(name, detail)
    if name == "grades" and len(place) > 1:
        return _explain_grade(place)
    if place == ("id",) and kind == "string_type":
        return id_words(detail["input"])
    return finding_words(detail, FIELDS if len(place) == 1 else FIELDS_WITHIN.get(name, ()))


def _explain_grade(place: tuple[int | str, ...]) -> str:
    """Return the message about an invalid grade or an empty id in `grades`."""
    if place[-1] == "[key]":
        return "`grades` names an empty id; write one"
    return f"the grade of `{'.'.join(map(str, place[1:]))}` is not a whole number from 0 to 1,000; write one"


def _explain_list(name: str, detail: ErrorDetails) -> str:
    """Return the message about a field that is no list, is too long, or does not fit another field."""
    if detail["type"] == "value_error":
        return detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "too_long":
        return f"`{name}` has {detail['ctx']['actual_length']:,} entries; write at most {detail['ctx']['max_length']:,}"
    return f"`{name}` is {kind_of(detail['input'])}; write a list of {LISTS[name]}"


RESPONSE, TOOL_CALLS = "expected_response", "expected_tool_calls"
SHARED = ("expected_chunks", "expected_sources", "expected_passages")
"""Expectations that no scorer of MLflow reads; they have the names of a golden line's fields."""

TEXT_TAGS = ("id", "domain", "difficulty", "category", "notes")
JSON_TAGS = ("draft", "grades", "relevant_grade", "metadata", "history")


def record_of(question: Question) -> dict[str, dict[str, Any]]:
    """Return the record of a question: `inputs`, `expectations` and `tags`."""
    line = line_of(question)
    expectations = {name: line[name] for name in SHARED if name in line}
    if question.expected_answer is not None:
        expectations[RESPONSE] = question.expected_answer
    if question.expected_tools:
        arguments = question.expected_arguments or ({},) * len(question.expected_tools)
        expectations[TOOL_CALLS] = [
            {"name": name, **({"arguments": dict(each)} if each else {})}
            for name, each in zip(question.expected_tools, arguments, strict=True)
        ]
    tags = {name: line[name] for name in TEXT_TAGS if name in line}
    tags |= {name: json.dumps(line[name], ensure_ascii=False) for name in JSON_TAGS if name in line}
    return {"inputs": {"question": question.question}, "expectations": expectations, "tags": tags}


def question_of(inputs: Mapping[str, Any], expectations: Mapping[str, Any]) -> Question | list[str]:
    """Return the question of a record, without its tags, or a list of all problems with it.

    The question's text is the input `question`, or the only text among the inputs.
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


def _tools(calls: object) -> dict[str, object]:
    """Return the names and arguments of expected calls; invalid values are kept for the check to refuse."""
    if not isinstance(calls, list):
        return {"expected_tools": calls}
    names = [call.get("name") if isinstance(call, dict) else call for call in calls]
    arguments = [(call.get("arguments") or {}) if isinstance(call, dict) else {} for call in calls]
    return {"expected_tools": names} | ({"expected_arguments": arguments} if any(arguments) else {})
