"""Pages of HTML and reStructuredText as sections of plain text, and the chunks that sections become."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from evaltrack.errors import UsageError
from evaltrack.golden.corpus import Chunk, parse_chunker
from evaltrack.golden.corpus.chunkers import Page, PageError, Section
from evaltrack.golden.corpus.html_page import read_html
from evaltrack.golden.corpus.rst_page import read_rst
from tests.files import data

TABLES = data("golden.json")

# HTML


def text(html: str) -> str:
    (section,) = read_html(html, "name").sections
    return section.text


def test_an_html_page_has_a_title_and_sections() -> None:
    html = "<title>Site</title><h1>Title</h1>Lead.<h2 id=one>One</h2><p>a<h3>Deep</h3>b<h2>Two</h2>c<h1>More</h1>d"
    one, two = Section("One", "a\n\n### Deep\n\nb", "one"), Section("Two", "c", "")
    page = Page("Title", (Section("", "Lead.", ""), one, two, Section("More", "d", "")))
    assert read_html(html, "name") == page
    in_table = read_html("<table><tr><td>menu<td><h1>T</h1>a<h2>S</h2>b</table>", "name")
    assert [(section.heading, section.text) for section in in_table.sections] == [("", "menu\n\na"), ("S", "b")]


@pytest.mark.parametrize(("html", "title"), TABLES["html_titles"])
def test_the_title_is_a_heading_of_the_content_or_that_of_the_page_or_the_file(html: str, title: str) -> None:
    assert read_html(html, "name").title == title


@pytest.mark.parametrize(("heading", "anchor"), TABLES["html_headings"])
def test_headings_know_where_links_lead(heading: str, anchor: str) -> None:
    _, section = read_html(f"<h1>T</h1>{heading}text", "name").sections
    assert section == Section("Use", "text", anchor)


@pytest.mark.parametrize(("html", "plain"), TABLES["html_texts"])
def test_html_becomes_what_the_page_says(html: str, plain: str) -> None:
    """Paragraphs, lists, code and rows keep their lines; navigation, scripts and what is hidden are left out."""
    assert text(html) == plain


@pytest.mark.parametrize("html", ["", "<frameset><frame src=x></frameset>", "\x00", "<", "<!--", "<html><body></body>"])
def test_html_without_text(html: str) -> None:
    page = read_html(html, "name")
    assert page.title == "name"
    assert not "".join(section.text for section in page.sections).strip("<\N{REPLACEMENT CHARACTER}")


def test_nesting_is_bounded() -> None:
    """Also where the elements are closed again; elements that need no end tag do not count."""
    assert text("<div>" * 900 + "x" + "</div>" * 900) == "x"
    for hostile in ("<div>" * 1001, "<b>" * 1001 + "</b>" * 1001):
        with pytest.raises(PageError, match=r"^its elements are nested deeper than 1,000; correct or remove it$"):
            read_html(hostile, "name")
    assert text("<p>" * 5000 + "x" + "<br>" * 5000) == "x"


# reStructuredText


def sections(rst: str) -> list[tuple[str, str]]:
    return [(section.heading, section.text) for section in read_rst(rst, "name").sections]


CODE = ".. code-block:: python\n\n   Head\n   ====\n\n::\n\n   Head\n   ====\n\nAs in::\n\n    Head\n    ===="
BODY = f".. function:: f(x)\n\n   Adds :math:`x`.\n\n{CODE}"


@pytest.mark.parametrize(
    ("rst", "title", "found"),
    [
        (
            "=====\nTitle\n=====\n\nLead.\n\nOne\n---\na\n\nDeep\n~~~~\n\nb\n\nTwo\n----\nc\n",
            *("Title", [("", "Lead."), ("One", "a\n\nDeep\n~~~~\n\nb"), ("Two", "c")]),
        ),
        ("A\n=\nx\n\nB\n=\ny\n\nC\n-\nz\n", "A", [("", "x"), ("B", "y"), ("C", "z")]),
        ("===\nA\n===\n===\nB\n===\ny", "A", [("", ""), ("B", "y")]),
        *((each, "name", [("", each.strip())]) for each in ("", "\n\nonly text\n", "=\nA")),
        ("T\n=\nx\n\nS\n-\n.. note::\n\n   Head\n   ----", "T", [("", "x"), ("S", ".. note::\n\n   Head\n   ----")]),
        (f"T\n=\n{BODY}\n\nS\n-\nx", "T", [("", BODY), ("S", "x")]),
        (
            ".. _top:\n\nT\n=\n.. _a b:\n\nx\n\n.. _`c: d`:\n.. _site: https://x.example\n\nS\n-\ny",
            *("T", [("", "x\n\n\n.. _site: https://x.example"), ("S", "y")]),
        ),
        ("T\n:::::\n\nS\n;;;;;\nx", "T", [("", ""), ("S", "x")]),
        *((f"T\n=\n\n{each}\n--------\nx", "T", [("", ""), (each, "x")]) for each in ("std::map", "If::")),
        ("T\n=\n\n" + "x*" * 20_000 + "\n\nS\n-\ny", "T", [("", "x*" * 20_000), ("S", "y")]),
    ],
    ids=lambda each: str(each)[:20] if isinstance(each, str) else "",
)
def test_rst_is_parted_at_headings_and_kept_as_it_is_written(
    rst: str, title: str, found: list[tuple[str, str]]
) -> None:
    """The first heading is the title, those of the first two levels start sections; no directive holds a heading."""
    assert (read_rst(rst, "name").title, sections(rst)) == (title, found)


@pytest.mark.parametrize(("heading", "words"), TABLES["rst_headings"])
def test_roles_code_and_links_in_an_rst_heading_leave_their_words(heading: str, words: str) -> None:
    (_, (found, _)) = sections(f"T\n=\n\n{heading}\n{'-' * 60}\ntext")
    assert found == words


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


@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"])
def test_other_separators_are_text(sign: str) -> None:
    found = sections(f"T\n=\none{sign}two\n\nS\n-\nthree\n\nR\n-\nfour")
    assert [(heading, text.split()) for heading, text in found] == [
        *[("", ["one", "two"]), ("S", ["three"]), ("R", ["four"])]
    ]


def test_pages_with_errors_are_read() -> None:
    rst = "T\n=\n\n+---+\n| a |\n\nS\n-\n*open `quote\n\n.. nonsense::\n\nD\n~\n\nS2\n==\nx"
    assert [heading for heading, _ in sections(rst)] == ["", "S", "S2"]


# Chunks


def chunks(how: str, *parts: Section) -> list[Chunk]:
    return list(parse_chunker(how)(Page("Title", parts), "p", "p.md"))


@pytest.mark.parametrize(("headings", "ids"), TABLES["repeated_headings"])
def test_repeated_headings_are_numbered(headings: list[str], ids: list[str]) -> None:
    made = chunks("heading", *(Section(heading, "text") for heading in headings))
    assert [chunk.id for chunk in made] == ids
    assert [chunk.url for chunk in made] == [each.replace("p", "p.md", 1) for each in ids]


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


def test_each_word_is_in_as_many_chunks_as_it_should_be() -> None:
    words = [str(number) for number in range(1000)]
    parts = [chunk.text.split() for chunk in chunks("words:70:20", Section("", " ".join(words)))]
    assert {len(part) for part in parts[:-1]} == {70}
    assert parts[0] + [word for part in parts[1:] for word in part[20:]] == words
    assert all(one[-20:] == two[:20] for one, two in pairwise(parts))


FORMS = "heading, words:SIZE or words:SIZE:OVERLAP, such as words:200:40"


@pytest.mark.parametrize(
    ("text", "cure"),
    [
        *(
            (each, FORMS)
            for each in ("", "words", "words:", "words:x", "words:-1", "words:2:", "words:1:2:3", "Heading")
        ),
        *((f"words:{size}", "a size from 1 to 100,000 words") for size in (0, 100_001)),
        ("words:5:5", "an overlap that is smaller than the size, at most 4"),
        ("words:1:999999", "an overlap that is smaller than the size, at most 0"),
    ],
)
def test_chunkers_that_cannot_be(text: str, cure: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_chunker(text)
    assert str(caught.value) == f"chunk is `{text}`; write {cure}"
