"""Plain lines as columns: the values are those of each line for itself, and what is not plain is no column."""

from __future__ import annotations

import json
from typing import Any

import pytest

from evaltrack.records import Source
from evaltrack.rows.block import response_of
from evaltrack.targets.line_columns import response_columns
from evaltrack.targets.plain_lines import MAX_SOURCES, plain_response

SOURCE = '{"chunk_id": "a", "title": "A", "url": "u", "text": "t", "score": 0.1}'

PLAIN = {
    "all fields": f'{{"id": "1", "answer": "x", "sources": [{SOURCE}], "abstained": true, "model": "m"}}',
    "the least": '{"id": "1", "sources": [{"chunk_id": "a"}]}',
    "none returned": '{"sources": [], "id": "1"}',
    "escapes": '{"id": "\\u0031", "answer": "\\u00e9\\ud83d\\ude00\\n\\"", "sources": []}',
    "no ASCII": '{"id": "1", "answer": "漢字 😀", "sources": []}',
    "a whole score": '{"id": "1", "sources": [{"chunk_id": "a", "score": 3}]}',
    "a long score": '{"id": "1", "sources": [{"chunk_id": "a", "score": 0.12345678901234567890}]}',
    "a large score": '{"id": "1", "sources": [{"chunk_id": "a", "score": 123456789012345678901234567890}]}',
    "nulls of a source": '{"id": "1", "sources": [{"chunk_id": "a", "title": null, "text": null, "score": null}]}',
    "its own wording": '{"id": "1", "wording": 0, "sources": []}',
    "a date is a text": '{"id": "1", "answer": "2026-11-25T10:00:00Z", "sources": []}',
}


@pytest.mark.parametrize("name", PLAIN)
def test_values_are_those_of_the_line(name: str) -> None:
    """Alone and among others."""
    raw = PLAIN[name].encode()
    line = plain_response(raw)
    assert line is not None
    for lines in ([raw], [raw, PLAIN["all fields"].encode()]):
        columns = response_columns(lines, ["1"] * len(lines))
        assert columns is not None
        assert response_of(columns.slice(0, 1).to_pylist()[0]).model_dump() == line[2].model_dump()


def test_a_title_alone_names_a_source() -> None:
    """Its id is null."""
    columns = response_columns([response(sources=[{"title": "A", "text": "t"}])], ["1"])
    assert columns is not None
    (source,) = response_of(columns.to_pylist()[0]).sources or ()
    assert source == Source(title="A", text="t")


def response(**fields: Any) -> bytes:
    """A line."""
    return json.dumps({"id": "1", "sources": []} | fields).encode()


OTHER = {
    "another question": response(id="2"),
    "a number as id": response(id=1),
    "a variant": response(wording=1),
    "no sources": b'{"id": "1", "answer": "x"}',
    "null sources": response(sources=None),
    "a null source": response(sources=[None]),
    "a source without a name": response(sources=[{"text": "t"}]),
    "an empty id": response(sources=[{"chunk_id": ""}]),
    "an id that is a number": response(sources=[{"chunk_id": 5}]),
    "ids alone": response(sources=["a"]),
    "another field": response(usage={"prompt_tokens": 1, "completion_tokens": 1}),
    "another field of a source": response(sources=[{"chunk_id": "a", "page": 3}]),
    "a flag that is none": response(abstained="yes"),
    "a NUL": response(answer="\0"),
    "half of a pair": b'{"id": "1", "sources": [], "answer": "\\ud800"}',
    "no UTF-8": b'{"id": "1", "sources": [], "answer": "\xff"}',
    "no number": response(sources=[{"chunk_id": "a", "score": float("nan")}]),
    "infinite": response(sources=[{"chunk_id": "a", "score": float("inf")}]),
    "too large a number": b'{"id": "1", "sources": [{"chunk_id": "a", "score": 1e999}]}',
    "a key twice": b'{"id": "1", "sources": [], "sources": []}',
    "no object": b"[1]",
    "no JSON": b'{"id": "1", "sources": [',
    "two objects": b'{"id": "1", "sources": []} {"id": "1", "sources": []}',
    "nothing": b"",
    "too many sources": response(sources=[{"chunk_id": "a"}] * (MAX_SOURCES + 1)),
}


@pytest.mark.parametrize("name", OTHER)
def test_what_is_not_plain_is_no_column(name: str) -> None:
    """Alone and among others."""
    good = PLAIN["the least"].encode()
    assert response_columns([OTHER[name]], ["1"]) is None
    assert response_columns([good, OTHER[name], good], ["1"] * 3) is None
