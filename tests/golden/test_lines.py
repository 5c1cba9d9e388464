"""What is said of a golden line whose turns are wrong: which, what it is, and what to write."""

from __future__ import annotations

from typing import Any

import pytest

from evaltrack.golden.lines import checked_question
from evaltrack.records import Question

USER = {"role": "user", "content": "x"}
FORM = 'write a list of turns, like [{"role": "user", "content": "the text"}]'


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"history": 5}, f"`history` is a number; {FORM}"),
        ({"history": None}, f"`history` is null; {FORM}"),
        ({"history": ["x"]}, "`history.0` is a string; write an object"),
        ({"history": [USER, {"role": "bot", "content": "x"}]}, "`history.1.role` is none of system, user, assis"),
        ({"history": [{"role": 5, "content": "x"}]}, "`history.0.role` is none of system, user, assis"),
        ({"history": [{"role": "user"}]}, "`history.0.content` is missing; write it"),
        ({"history": [{"role": "user", "content": " \n"}]}, "`history.0.content` is empty; write some text"),
        ({"history": [{"role": "user", "content": ["x"]}]}, "`history.0.content` is an array; write a text"),
        ({"history": [{"role": "user", "content": "a\0b"}]}, "`history.0.content` holds a NUL character; take it out"),
        ({"history": [USER | {"name": "b"}]}, "unknown field `history.0.name`; known fields: role, content"),
        ({"history": [USER] * 1001}, "`history` has 1,001 entries; write at most 1,000"),
    ],
)
def test_what_is_wrong_is_named(fields: dict[str, Any], problem: str) -> None:
    problems = checked_question({"id": 1, "question": "Why?", "domain": "d"} | fields)
    assert isinstance(problems, list)
    assert len(problems) == 1
    assert problems[0].startswith(problem)


def test_all_that_is_wrong_is_listed() -> None:
    problems = checked_question(
        {"id": 1, "question": "Why?", "domain": "d", "history": [{"role": "x", "content": ""}, USER, {}]}
    )
    assert isinstance(problems, list)
    assert len(problems) == 4


def test_empty_lists_say_nothing() -> None:
    plain = checked_question({"id": 1, "question": "Why?", "domain": "d", "history": []})
    assert plain == Question(id="1", question="Why?", domain="d")
