"""Plain golden lines are made into questions in one step, as they are field by field."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from evaltrack.golden.plain_question import plain_question
from evaltrack.records import Question

TEXTS = st.one_of(st.text(max_size=4), st.sampled_from(["", " ", "a\0b", "\ud800", "a\nb", "\x1c", "\xa0"]))
ODD = st.one_of(st.none(), st.booleans(), st.integers(-2, 2), TEXTS, st.just([]), st.just({}), st.just({"a": 1}))
KEYS = st.lists(TEXTS | st.integers(0, 9), max_size=3)
LINES = st.fixed_dictionaries(
    {"id": TEXTS | st.integers(0, 9) | st.booleans(), "question": TEXTS, "domain": TEXTS | st.just("d")},
    optional={
        "expected_chunks": KEYS | ODD,
        "expected_sources": KEYS | st.none(),
        "expected_answer": TEXTS | ODD,
        "difficulty": st.sampled_from(["easy", "medium", "hard", "", None, 1]),
        **dict.fromkeys(("category", "notes", "history", "variants", "metadata", "draft", "grades", "more"), ODD),
    },
)


@given(LINES)
@settings(max_examples=600, deadline=None)
def test_a_plain_line_is_the_question_that_it_is_field_by_field(line: dict[str, Any]) -> None:
    """The records and their digests are the same, and no line is plain that would be refused."""
    plain = plain_question(line)
    if plain is None:
        return
    question = Question.model_validate(line)
    assert repr(plain) == repr(question)
    assert plain == question
    assert (plain.digest, plain.judged_digest) == (question.digest, question.judged_digest)


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"expected_chunks": []},
        {"expected_chunks": ["a", "b"], "expected_sources": None},
        {"expected_sources": ["A page"], "expected_answer": "Yes.\nNo.", "difficulty": "hard", "category": ""},
    ],
)
def test_usual_lines_are_plain(more: dict[str, Any]) -> None:
    """What most files hold is made in one step."""
    line = {"id": "1", "question": "Why?", "domain": "d", **more}
    assert plain_question(line) == Question.model_validate(line)


@pytest.mark.parametrize(
    "more",
    [
        {"id": 1},
        {"question": " "},
        {"expected_chunks": [5]},
        {"expected_chunks": {"a": 2}},
        {"expected_chunks": [], "expected_sources": ["A"]},
        {"expected_answer": "a\0b"},
        {"history": []},
        {"metadata": {}},
        {"draft": False},
        {"unknown": 1},
    ],
)
def test_other_lines_are_not(more: dict[str, Any]) -> None:
    """Grades, conversations, free objects, drafts and whatever is wrong are left to the record itself."""
    assert plain_question({"id": "1", "question": "Why?", "domain": "d", **more}) is None


def test_what_is_wrong_is_still_named() -> None:
    """A line that is not plain for a fault is refused by the record."""
    with pytest.raises(ValidationError, match="NUL"):
        Question.model_validate({"id": "1", "question": "W\0", "domain": "d"})
