"""How a page becomes chunks, and what they are called."""

from __future__ import annotations

from itertools import pairwise

import pytest

from evaltrack.errors import UsageError
from evaltrack.golden.corpus import Chunk, parse_chunker
from evaltrack.golden.corpus.chunkers import Page, Section


def chunks(how: str, *sections: tuple[str, str]) -> list[Chunk]:
    """The chunks of a page `p` with these headings and texts."""
    page = Page("Title", tuple(Section(heading, text) for heading, text in sections))
    return list(parse_chunker(how)(page, "p", "p.md"))


def texts(how: str, text: str) -> list[str]:
    return [chunk.text for chunk in chunks(how, ("", text))]


# By heading


@pytest.mark.parametrize(
    ("headings", "ids"),
    [
        (["Example", "Example"], ["p#example", "p#example-1"]),
        (["One", "ONE!", "one", "One?"], ["p#one", "p#one-1", "p#one-2", "p#one-3"]),
        (["Example", "Example", "Example 1"], ["p#example", "p#example-1", "p#example-1-1"]),
        (["Example", "Example 1", "Example"], ["p#example", "p#example-1", "p#example-2"]),
        (["Example 1", "Example", "Example", "Example"], ["p#example-1", "p#example", "p#example-2", "p#example-3"]),
        (["", "", ""], ["p", "p#section", "p#section-1"]),
        (["", "!!!", "Section"], ["p", "p#section", "p#section-1"]),
    ],
)
def test_repeated_headings_are_numbered(headings: list[str], ids: list[str]) -> None:
    made = chunks("heading", *((heading, "text") for heading in headings))
    assert [chunk.id for chunk in made] == ids
    assert [chunk.url for chunk in made] == [each.replace("p", "p.md", 1) for each in ids]


def test_headings_without_text_take_no_number() -> None:
    assert [chunk.id for chunk in chunks("heading", ("A", ""), ("A", "x"), ("A", "y"))] == ["p#a", "p#a-1"]


def test_a_link_leads_to_the_anchor_that_the_page_has() -> None:
    page = Page("T", (Section("Use", "x", "id7"), Section("Use", "y", "")))
    made = list(parse_chunker("heading")(page, "p", "p.html"))
    assert [(chunk.id, chunk.url) for chunk in made] == [("p#use", "p.html#id7"), ("p#use-1", "p.html")]


# By words


def test_words() -> None:
    """Chunks follow each other through the page, headings among their words, with the page's title and link."""
    assert chunks("words:3", ("", "a b"), ("Empty", ""), ("C d", "e\nf g h")) == [
        Chunk("p@0", "Title", "", "p.md", "a b\n\nC"),
        Chunk("p@1", "Title", "", "p.md", "d\n\ne\nf"),
        Chunk("p@2", "Title", "", "p.md", "g h"),
    ]


@pytest.mark.parametrize(
    ("how", "parts"),
    [
        ("words:1", ["a", "b", "c", "d", "e"]),
        ("words:2", ["a b", "c d", "e"]),
        ("words:5", ["a b c d e"]),
        ("words:6:5", ["a b c d e"]),
        ("words:3:1", ["a b c", "c d e"]),
        ("words:3:2", ["a b c", "b c d", "c d e"]),
        ("words:4:1", ["a b c d", "d e"]),
        ("words:4:0", ["a b c d", "e"]),
    ],
)
def test_overlap(how: str, parts: list[str]) -> None:
    """Each chunk begins with the last words of the one before, and none holds only those."""
    assert texts(how, "a b c d e") == parts


def test_pages_of_few_words() -> None:
    assert texts("words:9:8", "a b") == ["a b"]
    assert texts("words:9:8", "") == []


def test_each_word_stands_in_as_many_chunks_as_it_should() -> None:
    words = [str(number) for number in range(1000)]
    parts = [text.split() for text in texts("words:70:20", " ".join(words))]
    assert {len(part) for part in parts[:-1]} == {70}
    assert parts[0] + [word for part in parts[1:] for word in part[20:]] == words
    assert all(one[-20:] == two[:20] for one, two in pairwise(parts))


# Settings


@pytest.mark.parametrize("text", ["", "words", "words:", "words:x", "words:-1", "words:2:", "words:1:2:3", "Heading"])
def test_other_ways_are_refused(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_chunker(text)
    ways = "write heading, words:SIZE or words:SIZE:OVERLAP, such as words:200:40"
    assert str(caught.value) == f"chunk is `{text}`; {ways}"


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        ("words:0", "a size from 1 to 100,000 words"),
        ("words:100001", "a size from 1 to 100,000 words"),
        ("words:5:5", "an overlap that is smaller than the size, at most 4"),
        ("words:1:999999", "an overlap that is smaller than the size, at most 0"),
    ],
)
def test_sizes_that_cannot_be(text: str, cure: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_chunker(text)
    assert str(caught.value) == f"chunk is `{text}`; write {cure}"
