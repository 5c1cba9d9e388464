"""A golden line: the question that it is, or all that is wrong with it; and the line of a question."""

from __future__ import annotations

import difflib

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from evaltrack.golden.entries import kind_of
from evaltrack.records import Question

MAX_DEPTH = 100
FIELDS = tuple(Question.model_fields)
LISTS = {
    "expected_chunks": 'chunk ids, like ["a", "b"]',
    "expected_sources": 'titles, like ["a", "b"]',
    "expected_passages": 'passages, like [{"quote": "the words that answer it"}]',
    "expected_tools": 'names, like ["a", "b"]',
}


def checked_question(value: dict[str, object]) -> Question | list[str]:
    """The question that a JSON object is, or all that is wrong with it; it needs a `domain`."""
    try:
        question = Question.model_validate(value)
    except ValidationError as error:
        return [_explain(detail) for detail in error.errors(include_url=False)]
    if _too_deep(question.metadata):
        return [f"`metadata` is nested deeper than {MAX_DEPTH}; make it flatter"]
    return question


def line_of(question: Question) -> dict[str, object]:
    """The JSON object that a question is written as anew: ids as text, without the fields that say nothing.

    What was graded is an object of ids and grades again.
    """
    line: dict[str, object] = question.model_dump(mode="json", exclude_defaults=True)
    relevant = [key for key, grade in question.grades.items() if grade >= question.relevant_grade]
    for name in ("expected_chunks", "expected_sources"):
        if relevant and line.get(name) == relevant and "grades" in line:
            line[name] = line.pop("grades")
    return line


def _too_deep(value: object, depth: int = 0) -> bool:
    """A row holds its question: what fills the 200 levels that JSON is read to would not come back from the journal."""
    if not value or not isinstance(value, dict | list):
        return False
    items = value.values() if isinstance(value, dict) else value
    return depth >= MAX_DEPTH or any(_too_deep(item, depth + 1) for item in items)


def _explain(detail: ErrorDetails) -> str:
    """One pydantic finding as `field: what is wrong; what to do`."""
    place, kind = detail["loc"], detail["type"]
    name = str(place[0]) if place else ""
    if kind == "extra_forbidden":
        near = difflib.get_close_matches(name, FIELDS, n=1) or [field for field in FIELDS if name and name in field]
        cure = f"did you mean `{near[0]}`?" if near else f"known fields: {', '.join(FIELDS)}"
        return f"unknown field `{name}`; {cure}"
    if kind == "missing":
        return f"`{name}` is missing; every question needs one"
    if kind in ("string_too_short", "string_pattern_mismatch"):
        return f"`{'.'.join(map(str, place))}` is empty; write some text"
    if name in LISTS and len(place) == 1:
        return f"`{name}` is {kind_of(detail['input'])}; write a list of {LISTS[name]}"
    if name == "grades":
        return f"the grade of `{'.'.join(map(str, place[1:]))}` is no whole number from 0 to 1,000; write one"
    message = detail["msg"].removeprefix("Value error, ")
    return f"`{'.'.join(map(str, place))}`: {message}" if place else message
