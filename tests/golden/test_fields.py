"""Fields of a golden file are set, and no other byte changes."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaltrack.golden.fields import ABSENT, set_fields


@pytest.mark.parametrize(
    ("text", "fields", "is_array", "content"),
    [
        ('{"id":1,  "a" :[2 ]}\r\n\n{"id": 2}\n', {0: {"a": ["b"]}}, False, '{"id":1,  "a" :["b"]}\r\n\n{"id": 2}\n'),
        ('{"id": 1}\n{"id": 2}', {1: {"a": {"é": 1}}}, False, '{"id": 1}\n{"id": 2, "a": {"\\u00e9": 1}}'),
        ('{"id": "é"}', {0: {"a": "ü"}}, False, '{"id": "é", "a": "ü"}'),
        (
            '[\n {"id": 1, "a": "}"},\n {"id": 2}]',
            {0: {"b": 1, "a": 0}},
            True,
            '[\n {"id": 1, "a": 0, "b": 1},\n {"id": 2}]',
        ),
    ],
)
def test_values_are_replaced_and_new_ones_come_last(
    text: str, fields: dict[int, dict[str, Any]], is_array: bool, content: str
) -> None:
    """Line ends, blanks and other values stay; a file of plain ASCII stays one."""
    assert set_fields(text, fields, is_array=is_array) == content


def test_a_question_that_is_not_there_is_named() -> None:
    """So that nothing is lost without a word."""
    with pytest.raises(ValueError, match="there is no question 3"):
        set_fields('{"id": 1}\n', {2: {"a": 1}}, is_array=False)


values = st.recursive(
    st.none() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner, max_size=3), max_leaves=4
)
objects = st.dictionaries(st.sampled_from("abcd"), values, min_size=1)


@settings(deadline=None, derandomize=True)
@given(lines=st.lists(objects, min_size=1, max_size=4), change=objects, place=st.integers(0, 3), is_array=st.booleans())
def test_the_questions_are_what_they_should_be(
    lines: list[dict[str, Any]], change: dict[str, Any], place: int, is_array: bool
) -> None:
    """Whatever stands there: the one question has the new values, the others are as they were."""
    place %= len(lines)
    text = json.dumps(lines) if is_array else "\n".join(map(json.dumps, lines))
    made = set_fields(text, {place: change}, is_array=is_array)
    parsed = json.loads(made) if is_array else [json.loads(line) for line in made.splitlines()]
    assert parsed == [line | change if number == place else line for number, line in enumerate(lines)]


@pytest.mark.parametrize(
    ("text", "fields", "content"),
    [
        ('{"id":1,  "a" :[2 ]}\r\n', {"a": ABSENT}, '{"id":1}\r\n'),
        ('{ "a" :2, "id": 1}', {"a": ABSENT}, '{ "id": 1}'),
        ('{"id": 1, "a": 2, "b": 3}', {"a": ABSENT, "c": 4}, '{"id": 1, "b": 3, "c": 4}'),
        ('{"id": 1, "a": 2 }', {"a": ABSENT, "c": 4}, '{"id": 1, "c": 4 }'),
        ('{"a": 2}', {"a": ABSENT, "c": 4}, '{"c": 4}'),
        ('{"id": 1}', {"gone": ABSENT}, '{"id": 1}'),
    ],
)
def test_fields_are_removed_with_one_comma(text: str, fields: dict[str, Any], content: str) -> None:
    """First, last or between others; blanks around the others stay."""
    assert set_fields(text, {0: fields}, is_array=False) == content


@settings(deadline=None, derandomize=True)
@given(question=objects, change=objects, gone=st.sets(st.sampled_from("abcd")))
def test_what_is_removed_is_gone_and_nothing_else(
    question: dict[str, Any], change: dict[str, Any], gone: set[str]
) -> None:
    """Whatever is set and removed at once."""
    fields = change | dict.fromkeys(gone, ABSENT)
    made = json.loads(set_fields(json.dumps(question), {0: fields}, is_array=False))
    assert made == {name: value for name, value in (question | change).items() if name not in gone}
