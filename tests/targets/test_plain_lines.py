"""Plain lines of recorded responses are read in one step, as they are read field by field."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaltrack.records.json_text import InvalidJsonError, may_repeat, num_keys
from evaltrack.targets.plain_lines import MAX_SOURCES, plain_place, plain_response
from evaltrack.targets.recorded_lines import _response_in

TEXTS = st.one_of(st.text(max_size=5), st.sampled_from(["", "a\0b", "É 😀", "\u2028", "\x1c"]))
ODD = st.one_of(st.none(), st.booleans(), st.integers(-2, 2), st.floats(), TEXTS, st.just([]), st.just({}))
SOURCES = st.dictionaries(
    st.sampled_from(["chunk_id", "title", "url", "text", "score", "finds", "id"]), ODD, max_size=5
)
PLAIN_SOURCES = st.fixed_dictionaries(
    {"chunk_id": st.text(min_size=1, max_size=3)},
    optional={"title": TEXTS | st.none(), "text": TEXTS, "score": st.floats() | st.integers(-9, 9)},
)
LINES = st.fixed_dictionaries(
    {"id": st.one_of(TEXTS, st.integers(), st.booleans())},
    optional={
        "wording": st.integers(-1, 101) | st.none(),
        "answer": TEXTS | ODD,
        "sources": st.lists(st.one_of(PLAIN_SOURCES, SOURCES), max_size=3) | ODD,
        "abstained": ODD,
        "model": TEXTS,
        "usage": ODD,
        "more": ODD,
    },
)


def by_fields(raw: bytes) -> object:
    """What reading it field by field gives, or the kind of its error."""
    try:
        return _response_in(raw)
    except ValueError as error:
        return type(error)


@given(LINES)
@settings(max_examples=400, deadline=None)
def test_a_plain_line_is_read_as_field_by_field(line: dict[str, Any]) -> None:
    """Id, wording and response are the same to the letter, and no line is plain that would be refused."""
    raw = json.dumps(line).encode()
    plain = plain_response(raw)
    suspect = may_repeat(raw, num_keys(line))
    assert plain_place(raw) == (None if suspect else plain and plain[:2])
    if plain is not None:
        assert repr(plain) == repr(by_fields(raw))


@pytest.mark.parametrize(
    "line",
    [
        '{"id": "a", "sources": []}',
        '{"id": 7, "wording": 2, "answer": "", "sources": [{"chunk_id": "c", "score": 1}], "abstained": true}',
        '{"sources": [{"chunk_id": "c", "title": null, "text": "\\u00e9"}], "id": "a", "model": "m"}',
    ],
)
def test_usual_lines_are_plain(line: str) -> None:
    """What most files hold is read in one step."""
    plain = plain_response(line.encode())
    assert plain is not None
    assert repr(plain) == repr(by_fields(line.encode()))


@pytest.mark.parametrize(
    "line",
    [
        "",
        "[]",
        '{"id": "a"}',
        '{"id": "", "sources": []}',
        '{"id": true, "sources": []}',
        '{"id": 1.0, "sources": []}',
        '{"id": "a", "sources": [{"chunk_id": 5}]}',
        '{"id": "a", "sources": [{"chunk_id": ""}]}',
        '{"id": "a", "sources": [{"title": "T"}]}',
        '{"id": "a", "sources": ["c"]}',
        '{"id": "a", "sources": [{"chunk_id": "c", "score": 1e999}]}',
        '{"id": "a", "sources": [{"chunk_id": "c", "text": "\\u0000"}]}',
        '{"id": "a", "sources": [{"chunk_id": "c", "text": "\\ud800"}]}',
        '{"id": "a", "sources": [], "usage": {}}',
        json.dumps({"id": "a", "sources": [{"chunk_id": "c"}] * (MAX_SOURCES + 1)}),
    ],
)
def test_other_lines_are_not(line: str) -> None:
    """Short forms, whole numbers as ids of chunks, and whatever is wrong are left to the reader of all forms."""
    assert plain_response(line.encode()) is None
    assert plain_place(line.encode()) is None


@pytest.mark.parametrize(
    "line",
    [
        '{"id": "a", "id": "b", "sources": []}',
        '{"id": "a", "sources": [], "sources" : []}',
        '{"id": "a", "answer": "b: c", "sources": [{"chunk_id": "c", "chunk_id": "d"}]}',
        '{"id": "a", "sources": [{"chunk_id": "c", "\\u0063hunk_id": "d"}]}',
    ],
)
def test_a_key_that_stands_twice_makes_no_plain_place(line: str) -> None:
    """However it is written: the reader of all forms refuses the line."""
    assert plain_place(line.encode()) is None
    with pytest.raises(InvalidJsonError, match="stands there twice; keep one of them"):
        _response_in(line.encode())
