"""JSON that people write: keys that stand twice, and what is said of what is no JSON."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaltrack.records.json_text import FAULTS, InvalidJsonError, no_repeats, parsed, refuse_repeats, spread_kind

NAMES = st.sampled_from(["a", "b", 'a": "b', ":", "é", " "])
SCALARS = st.one_of(st.none(), st.integers(0, 9), NAMES).map(json.dumps)
BLANKS = st.sampled_from(["", " ", "\t", "\r", "\n "])


@st.composite
def objects(draw: st.DrawFn, inner: st.SearchStrategy[str] = SCALARS) -> str:
    """The text of an object whose keys may repeat, with blanks where JSON allows them."""
    pairs = draw(st.lists(st.tuples(NAMES, BLANKS, BLANKS, inner), max_size=4))
    return "{" + ",".join(f"{json.dumps(name)}{one}:{other}{value}" for name, one, other, value in pairs) + "}"


TEXTS = objects(st.recursive(SCALARS, lambda inner: objects(inner) | inner.map(lambda text: f"[{text}]"), max_leaves=6))


def refuses(text: str, *, counted: bool) -> bool:
    raw = text.encode()
    try:
        refuse_repeats(raw, parsed(raw)) if counted else no_repeats(raw)
    except InvalidJsonError:
        return True
    return False


@given(TEXTS)
@settings(max_examples=400, deadline=None)
def test_counting_keys_finds_every_repeat(text: str) -> None:
    assert refuses(text, counted=True) == refuses(text, counted=False)


@pytest.mark.parametrize("text", ['{"a": 1', "[1", '{"a": "b', "", '{"a" 1}', "[1 2]", "nope", '["\\x"]', "01", "{,}"])
def test_the_words_of_the_parser_are_not_shown(text: str) -> None:
    with pytest.raises(InvalidJsonError, match=r"^is not JSON: .+ at column \d+; .+") as caught:
        parsed(text.encode())
    assert not any(fault in str(caught.value) for fault in FAULTS)


def test_of_several_lines_the_line_is_named() -> None:
    with pytest.raises(InvalidJsonError, match=r"^is not JSON: a `,` or `\]` is missing at line 3 column 1; write it$"):
        parsed(b"[\n1\n2]")


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        ("{", '"id": 1,', "an object"),
        ('{"id": 1,', '"answer": "a"}', "an object"),
        ("[", "{", "an array"),
        ('[{"id": 1},', '{"id": 2}]', "an array"),
        ('{"id": 1,', '{"id": 2}', ""),
        ('{"id": 1', "", ""),
        ('{"id": "1', '2"}', ""),
        ('{"id": 1}', '{"id": 2}', ""),
        ('{"id": 1},', '{"id": 2}', ""),
        ("[1]", "[2]", ""),
        ("nope", "{", ""),
    ],
)
def test_a_value_over_several_lines_is_told_from_a_line_that_is_cut_off(first: str, second: str, kind: str) -> None:
    assert spread_kind(first.encode(), second.encode()) == kind
