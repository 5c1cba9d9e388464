"""A question is added to a golden file, and no other byte changes."""

from __future__ import annotations

import pytest

from evaltrack.golden.additions import next_id, with_questions

LINE = {"id": 3, "question": "Où?"}
MADE = '{"id": 3, "question": "Où?"}'


@pytest.mark.parametrize(
    ("text", "is_array", "content"),
    [
        ("", False, f"{MADE}\n"),
        ('{"id":1}', False, f'{{"id":1}}\n{MADE}\n'),
        ('{"id":1}\r\n', False, f'{{"id":1}}\r\n{MADE}\r\n'),
        ("", True, f"[\n  {MADE}\n]\n"),
        ("[]", True, f"[\n  {MADE}]"),
        ('[{"a": "]"} ]\n', True, f'[{{"a": "]"}},\n  {MADE} ]\n'),
        ("[\n  1,\n  2\n]", True, f"[\n  1,\n  2,\n  {MADE}\n]"),
    ],
)
def test_it_comes_last(text: str, is_array: bool, content: str) -> None:
    """As a line of its own with the line ends of the file, or as the last element."""
    assert with_questions(text, [LINE], is_array=is_array) == content


@pytest.mark.parametrize(
    ("ids", "number"), [([], 1), (["1", "7", "3"], 8), (["q1", "²", "-4"], 1), (["1" * 30, "2"], 3), (["007"], 8)]
)
def test_an_id_is_one_more_than_the_largest_number(ids: list[str], number: int) -> None:
    """Other ids are no numbers."""
    assert next_id(ids) == number
