"""A folder of pages as chunks with stable ids: Markdown, plain text, and what is wrong with a folder."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from evaltrack.errors import UsageError
from evaltrack.golden.corpus import Chunk, parse_suffixes, read_corpus
from tests.files import data, put


def write(folder: Path, pages: Mapping[str, str | bytes]) -> Path:
    for name, content in pages.items():
        put(folder / name, content)
    return folder


def page(folder: Path, content: str | bytes) -> list[Chunk]:
    return read_corpus(write(folder, {"page.md": content}))


def ids(chunks: list[Chunk]) -> list[str]:
    return [chunk.id for chunk in chunks]


def refused(folder: Path) -> str:
    with pytest.raises(UsageError) as caught:
        read_corpus(folder)
    return str(caught.value)


# Chunks


def test_page(tmp_path: Path) -> None:
    """The text before the first heading is the lead, and each heading starts a chunk that knows its page."""
    lead = "# Schengen visa\n\nNinety days.\nIn all.\n\n"
    sections = "## Overstay\n\nA fine.\n\n### When\n\nAt once.\n## How long\nA year.\n"
    assert page(tmp_path, lead + sections) == [
        Chunk("page", "Schengen visa", "", "page.md", "Ninety days.\nIn all."),
        Chunk("page#overstay", "Schengen visa", "Overstay", "page.md#overstay", "A fine.\n\n### When\n\nAt once."),
        Chunk("page#how-long", "Schengen visa", "How long", "page.md#how-long", "A year."),
    ]


def test_folders_are_part_of_the_id(tmp_path: Path) -> None:
    pages = dict.fromkeys(("b.md", "a/z.md", "a/b/c.v2.md", "a.md"), "# T\nlead\n## S\ntext")
    chunks = read_corpus(write(tmp_path, {**pages, "notes.tex": "# T\nx", "a/read.MD": "# T\nx", "md": "# T\nx"}))
    assert ids(chunks) == ["a/b/c.v2", "a/b/c.v2#s", "a/z", "a/z#s", "a", "a#s", "b", "b#s"]
    assert chunks[1].url == "a/b/c.v2.md#s"


@pytest.mark.parametrize(("heading", "anchor"), data("golden.json")["anchors"])
def test_anchor(tmp_path: Path, heading: str, anchor: str) -> None:
    """A heading becomes an id in lower case, without punctuation, with one `-` for space; its own text stays."""
    (chunk,) = page(tmp_path, f"# T\n## {heading}\ntext")
    assert chunk.id == (f"page#{anchor}" if anchor else "page")
    assert chunk.url == (f"page.md#{anchor}" if anchor else "page.md")
    assert chunk.heading == heading.strip()


def test_ids_do_not_depend_on_the_text(tmp_path: Path) -> None:
    before = page(tmp_path, "# T\nlead\n## One\na\n## Two\nb")
    after = page(tmp_path, "# Another title\nnew lead\n\nmore\n## Two\nc\n\n## One\nd\n")
    assert sorted(ids(before)) == sorted(ids(after)) == ["page", "page#one", "page#two"]


@pytest.mark.parametrize(("content", "title", "text"), data("golden.json")["titles"])
def test_title(tmp_path: Path, content: str, title: str, text: str) -> None:
    """The title is the first `# ` line, which is no part of the text; a page without one is called as its file."""
    assert page(tmp_path, content) == [Chunk("page", title, "", "page.md", text)]


@pytest.mark.parametrize("content", [b"\xef\xbb\xbf# T\r\n\r\nlead\r\n## S\r\ntext\r\n", b"# T\rlead\r## S\rtext"])
def test_line_endings_and_mark(tmp_path: Path, content: bytes) -> None:
    assert [(each.title, each.heading, each.text) for each in page(tmp_path, content)] == [
        *[("T", "", "lead"), ("T", "S", "text")]
    ]


@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"])
def test_other_separators_are_text(tmp_path: Path, sign: str) -> None:
    chunks = page(tmp_path, f"# T\none{sign}two\n## S\nthree\n## R\nfour")
    assert [chunk.text.split() for chunk in chunks] == [["one", "two"], ["three"], ["four"]]


def test_code_is_text(tmp_path: Path) -> None:
    """Inside a fence `#` and `##` start nothing, and after it they do again."""
    content = "# T\n```sh\n# a comment\n## no heading\n```\n## One\n  ```\n## nor here\n  ```\n## Two\ntext"
    assert [(chunk.id, chunk.text) for chunk in page(tmp_path, content)] == [
        ("page", "```sh\n# a comment\n## no heading\n```"),
        ("page#one", "```\n## nor here\n  ```"),
        ("page#two", "text"),
    ]


# Formats


def test_a_folder_may_hold_several_formats(tmp_path: Path) -> None:
    pages = {
        "a.md": "# T\n## S\nx",
        "b.rst": "T\n=\n\nS\n-\nx",
        "c.txt": "# x\n## no heading\n",
        "d.html": "<h1>T</h1><h2 id=s>S</h2>x",
        "e.htm": "<title>T</title>x",
    }
    assert read_corpus(write(tmp_path, pages)) == [
        Chunk("a#s", "T", "S", "a.md#s", "x"),
        Chunk("b#s", "T", "S", "b.rst#s", "x"),
        Chunk("c", "c", "", "c.txt", "# x\n## no heading"),
        Chunk("d#s", "T", "S", "d.html#s", "x"),
        Chunk("e", "T", "", "e.htm", "x"),
    ]
    assert ids(read_corpus(tmp_path, suffixes=parse_suffixes("html,htm"))) == ["d#s", "e"]
    assert ids(read_corpus(tmp_path, suffixes=parse_suffixes(".md, txt"))) == ["a#s", "c"]


@pytest.mark.parametrize("text", ["pdf", "md,", "MD", ","])
def test_formats_that_cannot_be_read(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_suffixes(text)
    known = "htm, html, md, rst, txt"
    assert str(caught.value) == f"files is `{text}`; write one or more of {known}, with commas between them"


def test_the_sources_that_sphinx_copies_are_left_out(tmp_path: Path) -> None:
    pages = {"index.html": "<p>x", "_sources/index.rst.txt": "x", "a/_sources/b/c.md.txt": "x", "_sources.txt": "x"}
    assert ids(read_corpus(write(tmp_path, pages))) == ["_sources", "index"]


def test_html_in_another_charset(tmp_path: Path) -> None:
    head = '<meta http-equiv="Content-Type" content="text/html; charset=iso-8859-1">'
    (chunk,) = read_corpus(write(tmp_path / "read", {"page.html": f"{head}café".encode("latin-1")}))
    assert chunk.text == "café"
    declared = b'<meta charset="%s">caf\xe9'
    pages = {f"{name}.html": declared % name.encode() for name in ("ascii", "isononsense", "punycode", "utf-16", "zip")}
    lines = refused(write(tmp_path / "refused", {**pages, "page.md": declared % b"latin-1"})).splitlines()
    assert [line.partition(": ")[2].partition(";")[0] for line in lines] == [
        "is neither UTF-8 nor ascii, which it declares",
        "is neither UTF-8 nor isononsense, which it declares",
        "is not UTF-8 (byte 0xe9 at position 27)",
        "is not UTF-8 (byte 0xe9 at position 28)",
        "is neither UTF-8 nor utf-16, which it declares",
        "is not UTF-8 (byte 0xe9 at position 23)",
    ]


# Errors


def test_no_folder(tmp_path: Path) -> None:
    """A folder that is not there, or is a file, is an error."""
    (file := tmp_path / "page.md").write_text("# T\ntext")
    for folder in (tmp_path / "none", file):
        assert refused(folder) == (
            f"corpus {folder}: no such directory; name a folder of pages (.htm, .html, .md, .rst, .txt)"
        )


BLANK = {"a.html": "", "b.rst": "", "c.txt": " \n", "d.htm": "<script>x</script><nav>x</nav>", "e.md": "# T\n## S\n"}


@pytest.mark.parametrize("pages", [{}, {"notes.tex": "# T\ntext"}, BLANK, {"page.md/x.tex": ""}])
def test_no_pages(tmp_path: Path, pages: Mapping[str, str | bytes]) -> None:
    """A folder from which no chunk comes is an error that says what a page is."""
    write(tmp_path, pages)
    assert refused(tmp_path) == f"corpus {tmp_path}: holds no pages with text (.htm, .html, .md, .rst, .txt)"


def test_all_problems_of_a_folder_are_one_error(tmp_path: Path) -> None:
    corpus = write(
        tmp_path / "corpus",
        {
            "a.md": "# T\ntext\n## B\nx",
            "a#b.md": "# T\ntext",
            "b.md": "# T\ntext",
            "b.txt": "text",
            "bytes.md": b"# T\ncaf\xe9",
            "deep.html": "<div>" * 1001,
            "deep.rst": "- " * 3000 + "x",
            "ok.md": "# T\ntext",
        },
    )
    (corpus / "big.txt").touch()
    os.truncate(corpus / "big.txt", 32 * 2**20 + 1)
    (corpus / "gone.md").symlink_to("nowhere.md")
    (corpus / "loop.md").symlink_to("loop.md")
    (corpus / "out.md").symlink_to("../secret.md")
    (tmp_path / "secret.md").write_text("# T\ntext")
    os.mkfifo(corpus / "pipe.md")
    write(tmp_path, {os.fsdecode(b"corpus/caf\xe9.md"): "x"})
    assert refused(corpus).splitlines() == [
        f"corpus page {corpus}/a.md: another page has a chunk `a#b` too; rename a file",
        f"corpus {corpus}: the page `b` is there as b.md and b.txt; rename or remove one, "
        "or read one format only (files=md)",
        f"corpus page {corpus}/big.txt: is larger than 32 MB; part it into several pages",
        f"corpus page {corpus}/bytes.md: is not UTF-8 (byte 0xe9 at position 7); save it as UTF-8",
        f"corpus page {corpus}/caf\N{REPLACEMENT CHARACTER}.md: its path is not UTF-8; rename it",
        f"corpus {corpus}: the page `deep` is there as deep.html and deep.rst; rename or remove one, "
        "or read one format only (files=html)",
        f"corpus page {corpus}/deep.html: its elements are nested deeper than 1,000; correct or remove it",
        f"corpus page {corpus}/deep.rst: docutils cannot read it: it is nested too deep; correct it, "
        "or rename it to .txt",
        f"corpus page {corpus}/gone.md: cannot be read: No such file or directory; correct or remove it",
        f"corpus page {corpus}/loop.md: cannot be read: Too many levels of symbolic links; correct or remove it",
        f"corpus page {corpus}/out.md: links to a file outside of the folder; copy the page in",
        f"corpus page {corpus}/pipe.md: is not a regular file (a pipe?); remove it",
    ]


def test_what_is_wrong_with_very_many_pages_is_bounded(tmp_path: Path) -> None:
    lines = refused(write(tmp_path, {f"{number:02}.md": b"\xff" for number in range(25)})).splitlines()
    assert (len(lines), lines[-1]) == (21, "... and 5 more problems")


def test_a_folder_called_like_a_page_is_a_folder(tmp_path: Path) -> None:
    assert ids(read_corpus(write(tmp_path, {"site.html/index.html": "<p>x"}))) == ["site.html/index"]


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read every file")
def test_what_may_not_be_read_is_named(tmp_path: Path) -> None:
    folder = write(tmp_path, dict.fromkeys(("page.md", "closed/page.md"), "# T\ntext")) / "closed"
    for path in (tmp_path / "page.md", folder):
        path.chmod(0)
    said = "cannot be read: Permission denied; correct or remove it"
    assert refused(tmp_path).splitlines() == [
        *[f"corpus folder {folder}: {said}", f"corpus page {tmp_path / 'page.md'}: {said}"]
    ]
    folder.chmod(0o700)


def test_links_stay_inside(tmp_path: Path) -> None:
    """A link to a page inside of the folder, and a link to the folder itself, are read."""
    corpus = write(tmp_path / "corpus", {"page.md": "# T\ntext"})
    (corpus / "same.md").symlink_to("page.md")
    (tmp_path / "alias").symlink_to(corpus)
    assert ids(read_corpus(tmp_path / "alias")) == ["page", "same"]


NPM = "---\ntitle: npm-access\nsection: 1\n---\n\n### Synopsis\n\nuse\n\n### Description\n\nsets\n\n#### More\n\nx\n"


def test_a_page_whose_headings_start_lower_is_parted_at_its_highest(tmp_path: Path) -> None:
    chunks = page(tmp_path, NPM)
    assert [(chunk.id, chunk.title, chunk.text) for chunk in chunks] == [
        ("page#synopsis", "npm-access", "use"),
        ("page#description", "npm-access", "sets\n\n#### More\n\nx"),
    ]
    assert ids(page(tmp_path, "# T\n\nlead\n\n### A\n\na\n\n#### B\n\nb\n")) == ["page", "page#a"]
    assert ids(page(tmp_path, "### Z\n\nz\n\n## A\n\na\n\n### B\n\nb\n")) == ["page", "page#a"]


@pytest.mark.parametrize(("front", "title"), [*data("golden.json")["front_matters"], ("a: " + "[" * 30_000, "page")])
def test_the_title_in_a_front_matter_is_that_of_a_page_without(tmp_path: Path, front: str, title: str) -> None:
    (chunk,) = page(tmp_path, f"---\n{front}\n---\ntext\n")
    assert (chunk.title, chunk.text) == (title, "text")
    (chunk,) = page(tmp_path, f"---\n{front}\n---\n# Own\ntext\n")
    assert chunk.title == "Own"
