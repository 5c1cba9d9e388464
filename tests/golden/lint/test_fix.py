"""Corrections in the text of a file: what they change, and that nothing else does."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaltrack.golden.lint.finding import Edit
from evaltrack.golden.lint.fix import EditError, apply_edits

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
SPACE = st.text(" \t", max_size=2)


@pytest.mark.parametrize(
    ("before", "edit", "after"),
    [
        ('["a" ,  "b"]', Edit(0, "expected_chunks", 1, "b", "B"), '["a" ,  "B"]'),
        ('["a" ,  "b", "c"]', Edit(0, "expected_chunks", 1, "b", None), '["a", "c"]'),
        ("[46]", Edit(0, "expected_chunks", 0, "46", "0046"), '["0046"]'),
        (r'["\u0061\/b"]', Edit(0, "expected_chunks", 0, "a/b", "é"), r'["\u00e9"]'),
        ('["ä"]', Edit(0, "expected_chunks", 0, "ä", "é"), '["é"]'),
    ],
)
def test_one_text_is_replaced_as_it_was_written(before: str, edit: Edit, after: str) -> None:
    """Spaces beside it stay; a file of ASCII alone stays one; numbers become texts."""
    line = '\r\n \n{{ "id":1,\t"expected_chunks" : {} , "notes":"\\u0041" }}\r\nrest'
    assert apply_edits(line.format(before), [edit], is_array=False) == line.format(after)


def test_a_byte_order_mark_stays() -> None:
    """In both forms of a file."""
    edit = Edit(0, "question", None, "a ", "a")
    assert apply_edits('\ufeff{"question": "a "}', [edit], is_array=False) == '\ufeff{"question": "a"}'
    assert apply_edits('\ufeff[{"question": "a "}]', [edit], is_array=True) == '\ufeff[{"question": "a"}]'


def test_a_field_is_replaced() -> None:
    """The text of the question, in the second object, and not the key of the same text."""
    text = '{"id": "question"}\n{"id": 2, "question": " a? "}'
    fixed = apply_edits(text, [Edit(1, "question", None, " a? ", "a?")], is_array=False)
    assert fixed == '{"id": "question"}\n{"id": 2, "question": "a?"}'


@settings(deadline=None, derandomize=True, max_examples=150)
@given(st.lists(st.lists(TEXT, min_size=2, max_size=4), min_size=1, max_size=4), SPACE, st.booleans(), st.booleans())
def test_nothing_but_the_texts_changes(lists: list[list[str]], space: str, is_array: bool, ascii_only: bool) -> None:
    """Of any file: the first text of each list is another, the last is gone, and all other characters are as before."""
    sep = f"{space},{space}"

    def written(lists: list[list[str]]) -> str:
        objects = []
        for number, texts in enumerate(lists):
            elements = sep.join(json.dumps(text, ensure_ascii=ascii_only) for text in texts)
            objects.append(
                f'{{"id"{space}:{number}{sep}"x":[{space}{elements}{space}],"expected_chunks":{{"a": [1]}}}}'
            )
        return f"[{f'{space},'.join(objects)}]\n" if is_array else f"{space}\n".join(objects)

    edits = []
    for number, texts in enumerate(lists):
        edits.append(Edit(number, "x", len(texts) - 1, texts[-1], None))
        edits.append(Edit(number, "x", 0, texts[0], "new"))
    wanted = written([["new", *texts[1:-1]] for texts in lists])
    assert apply_edits(written(lists), edits, is_array=is_array) == wanted


@pytest.mark.parametrize(
    ("text", "edit", "message"),
    [
        ('{"x": ["b"]}', Edit(0, "x", 0, "a", "c"), "`x` does not hold `a`"),
        ('{"x": ["b"]}', Edit(0, "x", 1, "a", "c"), "`x` does not hold `a`"),
        ('{"x": "b"}', Edit(0, "y", None, "b", "c"), "`y` does not hold `b`"),
        ('{"x": ["b"], "x": ["a"]}', Edit(0, "x", 0, "a", "c"), "`x` is there twice"),
        ('{"x": ["b"]}', Edit(4, "x", 0, "b", "c"), "there is no question 5"),
    ],
)
def test_a_text_that_is_not_where_it_was_is_left_alone(text: str, edit: Edit, message: str) -> None:
    """The file was changed meanwhile, or says a thing twice."""
    with pytest.raises(EditError, match=message):
        apply_edits(text, [edit], is_array=False)
