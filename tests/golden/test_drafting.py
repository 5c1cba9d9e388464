"""Chunks that questions are drafted from."""

from __future__ import annotations

import pytest

from evaltrack.golden.corpus import Chunk
from evaltrack.golden.drafting import category_of, spread


@pytest.mark.parametrize(
    ("heading", "category"),
    [
        ("Installing from Source", "installation"),
        ("Proxy settings", "configuration"),
        ("Error codes", "troubleshooting"),
        ("The `Client` class", "api"),
        ("Denied boarding", "usage"),
    ],
)
def test_a_heading_has_a_category(heading: str, category: str) -> None:
    assert category_of(heading) == category


def test_chunks_are_spread_over_pages() -> None:
    texts = {"a#1": "word " * 20, "a#2": "word " * 20, "b#1": "word " * 20, "c#1": "Too short."}
    chunks = [Chunk(key, key[0], "", f"{key[0]}.md", text) for key, text in texts.items()]
    ids = [chunk.id for chunk in spread(chunks, 9)]
    assert sorted(ids) == ["a#1", "a#2", "b#1"]
    assert {key[0] for key in ids[:2]} == {"a", "b"}
    assert ids == [chunk.id for chunk in spread(chunks, 9)]
    assert [chunk.id for chunk in spread(chunks, 1)] == ids[:1]
