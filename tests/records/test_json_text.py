"""JSON that people write: keys that stand twice, and what is said of what is no JSON."""

from __future__ import annotations

import pytest

from evaltrack.records.json_text import InvalidJsonError, no_repeats, parsed


@pytest.mark.parametrize("text", ['{"a": 1, "b": 2, "a": 1}', '[{"b": {"a": 1, "\\u0061": 2}}]', '{"a" :[], "a":{}}'])
def test_a_key_that_stands_twice_in_one_object_is_refused(text: str) -> None:
    with pytest.raises(InvalidJsonError, match="`a` is given twice; keep one of them"):
        no_repeats(text)
    no_repeats('{"a": {"a": "a", "b": ":"}, "b": [{"a": 1}, {"a": 1}]}')


@pytest.mark.parametrize("text", ['{"a": 1', "[1", '{"a": "b', "", '{"a" 1}', "[1 2]", "nope", '["\\x"]', "01", "{,}"])
def test_the_place_and_the_fault_are_named(text: str) -> None:
    with pytest.raises(InvalidJsonError, match=r"^invalid JSON: .+ at column \d+; (correct|complete) it"):
        parsed(text.encode())


def test_of_several_lines_the_line_is_named() -> None:
    with pytest.raises(InvalidJsonError, match=r"^invalid JSON: expected `,` or `\]` at line 3 column 1; correct it$"):
        parsed(b"[\n1\n2]")
