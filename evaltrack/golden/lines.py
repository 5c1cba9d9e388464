"""A golden line: the question that it is, or all that is wrong with it; and the line of a question."""

from __future__ import annotations

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
    """The question that a JSON object is, or all that is wrong with it; it needs a `domain`."""
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
    """The JSON object that a question is written as anew: ids as text, without the fields that say nothing.

    What was graded is an object of ids and grades again.
    """
    line: dict[str, object] = question.model_dump(mode="json", exclude_defaults=True)
    relevant = [key for key, grade in question.grades.items() if grade >= question.relevant_grade]
    for name in ("expected_chunks", "expected_sources"):
        if relevant and line.get(name) == relevant and "grades" in line:
            line[name] = line.pop("grades")
    return line


def _graded_negative(value: dict[str, object]) -> str:
    """Why the grades beside a list contradict it; empty where they do not."""
    grades, least = value.get("grades"), value.get("relevant_grade", 1)
    if not isinstance(grades, dict) or not isinstance(least, int):
        return ""
    empty = next((name for name in EXPECTATIONS if value.get(name) == []), None)
    relevant = next((key for key, grade in grades.items() if isinstance(grade, int) and grade >= least), None)
    if empty is None or relevant is None:
        return ""
    cure = f"write the grades in place of the list, or take `{relevant}` out of them"
    return f"`grades` says that `{relevant}` is relevant, but `{empty}` is empty, as of a negative question; {cure}"


def _explain(detail: ErrorDetails) -> str:
    """One pydantic finding as `field: what is wrong; what to do`."""
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
    """That an id has a grade that is none, or is none itself."""
    if place[-1] == "[key]":
        return "`grades` names an empty id; write one"
    return f"the grade of `{'.'.join(map(str, place[1:]))}` is no whole number from 0 to 1,000; write one"


def _explain_list(name: str, detail: ErrorDetails) -> str:
    """That a field is no list, too long a one, or one that does not fit another."""
    if detail["type"] == "value_error":
        return detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "too_long":
        return f"`{name}` has {detail['ctx']['actual_length']:,} entries; write at most {detail['ctx']['max_length']:,}"
    return f"`{name}` is {kind_of(detail['input'])}; write a list of {LISTS[name]}"
