"""Pages that are hostile or hold no text, and chunks of words. `tests/data/corpora.json` has the others."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaltrack.errors import UsageError
from evaltrack.golden.corpus import Chunk, Page, Section, parse_chunker
from evaltrack.golden.corpus.html_page import read_html
from evaltrack.golden.corpus.rst_page import read_rst
from tests.files import data

TABLES = data("golden.json")

# HTML


@pytest.mark.parametrize("html", ["", "<frameset><frame src=x></frameset>", "\x00", "<", "<!--", "<html><body></body>"])
def test_html_without_text(html: str) -> None:
    page = read_html(html, "name")
    assert page.title == "name"
    assert not "".join(section.text for section in page.sections).strip("<\N{REPLACEMENT CHARACTER}")


# reStructuredText


def sections(rst: str) -> list[tuple[str, str]]:
    return [(section.heading, section.text) for section in read_rst(rst, "name").sections]


def test_a_long_line_is_read() -> None:
    assert sections("T\n=\n\n" + "x*" * 20_000 + "\n\nS\n-\ny") == [("", "x*" * 20_000), ("S", "y")]


def directives(secret: Path) -> Iterator[str]:
    """Ways to read a file, to run code or to pass markup through."""
    files = (f":file: {secret}", f":url: file://{secret}")
    yield from (f".. {name}:: {secret}" for name in ("include", "literalinclude", "image", "|x| image"))
    yield from (f".. raw:: html\n   {option}" for option in files)
    yield from (f".. csv-table:: t\n   {option}" for option in files)
    yield f".. figure:: {secret}\n   :figwidth: image"
    yield f".. include:: {secret}\n   :parser: loaded_by_a_page"
    yield f"- - .. include:: {secret}\n       :parser: loaded_by_a_page"
    yield f".. |long\n   name| include:: {secret}\n   :parser: loaded_by_a_page"
    yield ".. role:: raw-html(raw)\n   :format: html\n\n:raw-html:`<b>`"
    yield ".. default-role:: nonsense\n\n`x`"
    yield ".. parsed-literal::\n   :class: x\n\n   x"


def test_no_file_is_read_and_nothing_is_run(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (secret := tmp_path / "secret.rst").write_text("Secret\n------\nsecret text")
    (tmp_path / "loaded_by_a_page.py").write_text("class Parser: ...")
    monkeypatch.syspath_prepend(str(tmp_path))
    for directive in directives(secret):
        assert sections(f"T\n=\n\n{directive}\n\nS\n-\nx") == [("", directive), ("S", "x")]
    assert "loaded_by_a_page" not in sys.modules
    assert capfd.readouterr() == ("", "")


# Chunks


def chunks(how: str, *parts: Section) -> list[Chunk]:
    return list(parse_chunker(how)(Page("Title", parts), "p", "p.md"))


def test_links_lead_to_the_anchors_of_the_page_and_sections_without_text_take_no_number() -> None:
    made = chunks("heading", Section("Use", "", "x"), Section("Use", "x", "id7"), Section("Use", "y", ""))
    assert [(chunk.id, chunk.url) for chunk in made] == [("p#use", "p.md#id7"), ("p#use-1", "p.md")]


def test_chunks_of_words_follow_each_other_through_the_page() -> None:
    assert chunks("words:3", Section("", "a b"), Section("Empty", ""), Section("C d", "e\nf g h")) == [
        Chunk("p@0", "Title", "", "p.md", "a b\n\nC"),
        Chunk("p@1", "Title", "", "p.md", "d\n\ne\nf"),
        Chunk("p@2", "Title", "", "p.md", "g h"),
    ]


@pytest.mark.parametrize(("how", "parts"), TABLES["overlaps"])
def test_each_chunk_begins_with_the_last_words_of_the_one_before(how: str, parts: list[str]) -> None:
    assert [chunk.text for chunk in chunks(how, Section("", "a b c d e"))] == parts
    assert [chunk.text for chunk in chunks("words:9:8", Section("", "a b"))] == ["a b"]
    assert chunks("words:9:8", Section("", "")) == []


@pytest.mark.parametrize(("text", "cure"), TABLES["chunkers_that_cannot_be"])
def test_chunkers_that_cannot_be(text: str, cure: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_chunker(text)
    assert str(caught.value) == f"chunk is `{text}`; write {cure}"
