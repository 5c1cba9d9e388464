"""A folder of Markdown pages as chunks with stable ids."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from evaltrack.errors import UsageError
from evaltrack.golden.corpus import Chunk, read_corpus


def write(folder: Path, pages: dict[str, str | bytes]) -> Path:
    for name, content in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return folder


def page(folder: Path, content: str | bytes) -> list[Chunk]:
    """The chunks of one page called `page.md`."""
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
    """Pages in folders are read too, in the order of their paths, and other files are not."""
    pages = dict.fromkeys(("b.md", "a/z.md", "a/b/c.v2.md", "a.md"), "# T\nlead\n## S\ntext")
    chunks = read_corpus(write(tmp_path, {**pages, "notes.txt": "# T\nx", "a/read.MD": "# T\nx", "md": "# T\nx"}))
    assert ids(chunks) == ["a/b/c.v2", "a/b/c.v2#s", "a/z", "a/z#s", "a", "a#s", "b", "b#s"]
    assert chunks[1].url == "a/b/c.v2.md#s"


@pytest.mark.parametrize(
    ("heading", "anchor"),
    [
        ("Overstay", "overstay"),
        ("How long?", "how-long"),
        ("  Two   spaces\u00a0and a\ttab ", "two-spaces-and-a-tab"),
        ("Break-even (in units)", "break-even-in-units"),
        ("`max_rows` & 3.5 %", "max_rows-35"),
        ("Größe – «Été»", "größe-été"),
        ("価格", "価格"),
        ("2024", "2024"),
        ("", ""),
    ],
)
def test_anchor(tmp_path: Path, heading: str, anchor: str) -> None:
    """A heading becomes an id in lower case, without punctuation, with one `-` for space; its own text stays."""
    (chunk,) = page(tmp_path, f"# T\n## {heading}\ntext")
    assert chunk.id == (f"page#{anchor}" if anchor else "page")
    assert chunk.url == (f"page.md#{anchor}" if anchor else "page.md")
    assert chunk.heading == heading.strip()


def test_ids_do_not_depend_on_the_text(tmp_path: Path) -> None:
    """Editing the text, or moving a section, leaves every id as it is."""
    before = page(tmp_path, "# T\nlead\n## One\na\n## Two\nb")
    after = page(tmp_path, "# Another title\nnew lead\n\nmore\n## Two\nc\n\n## One\nd\n")
    assert sorted(ids(before)) == sorted(ids(after)) == ["page", "page#one", "page#two"]


@pytest.mark.parametrize(
    ("content", "title", "text"),
    [
        ("no title here\n", "page", "no title here"),
        ("# \nlead", "", "lead"),
        ("preface\n#  Spaced  \nlead", "Spaced", "preface\n\nlead"),
        ("#hashtag\nlead", "page", "#hashtag\nlead"),
        ("# First\nlead\n# Second\nmore", "First", "lead\n\nmore"),
    ],
)
def test_title(tmp_path: Path, content: str, title: str, text: str) -> None:
    """The title is the first `# ` line, which is no part of the text; a page without one is called as its file."""
    assert page(tmp_path, content) == [Chunk("page", title, "", "page.md", text)]


@pytest.mark.parametrize("content", [b"\xef\xbb\xbf# T\r\n\r\nlead\r\n## S\r\ntext\r\n", b"# T\rlead\r## S\rtext"])
def test_line_endings_and_mark(tmp_path: Path, content: bytes) -> None:
    """A byte-order mark and other line endings change nothing."""
    assert page(tmp_path, content) == [
        Chunk("page", "T", "", "page.md", "lead"),
        Chunk("page#s", "T", "S", "page.md#s", "text"),
    ]


@pytest.mark.parametrize("sign", ["\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"])
def test_other_separators_are_text(tmp_path: Path, sign: str) -> None:
    """A sign that only some programs take for the end of a line moves no text from one chunk to another."""
    chunks = page(tmp_path, f"# T\none{sign}two\n## S\nthree\n## R\nfour")
    assert [(chunk.id, chunk.text.split()) for chunk in chunks] == [
        ("page", ["one", "two"]),
        ("page#s", ["three"]),
        ("page#r", ["four"]),
    ]


def test_sections_without_text_are_no_chunks(tmp_path: Path) -> None:
    """A heading with nothing under it, and an empty lead, give no chunk."""
    assert ids(page(tmp_path, "# T\n\n## Empty\n \n## Full\ntext\n## Last\n")) == ["page#full"]


def test_code_is_text(tmp_path: Path) -> None:
    """Inside a fence `#` and `##` start nothing, and after it they do again."""
    content = "# T\n```sh\n# a comment\n## no heading\n```\n## One\n  ```\n## nor here\n  ```\n## Two\ntext"
    assert [(chunk.id, chunk.text) for chunk in page(tmp_path, content)] == [
        ("page", "```sh\n# a comment\n## no heading\n```"),
        ("page#one", "```\n## nor here\n  ```"),
        ("page#two", "text"),
    ]


def test_fence_that_is_never_closed(tmp_path: Path) -> None:
    """A fence that nothing closes runs to the end of the page, and its text is kept."""
    assert [(chunk.id, chunk.text) for chunk in page(tmp_path, "# T\nlead\n## S\ntext\n```\ncode\n")] == [
        ("page", "lead"),
        ("page#s", "text\n```\ncode"),
    ]


@pytest.mark.parametrize("fenced", ["~~~\n## no\n~~~", "````\n```\n## no\n```\n````"])
def test_other_fences(tmp_path: Path, fenced: str) -> None:
    """A fence of tildes, or of more backticks around three, holds no headings either."""
    assert ids(page(tmp_path, f"# T\n{fenced}\n## S\ntext")) == ["page", "page#s"]


def test_code_in_one_line(tmp_path: Path) -> None:
    """Code between backticks on one line opens no fence."""
    assert ids(page(tmp_path, "# T\n```x``` is code\n## S\ntext\n## R\ntext")) == ["page", "page#s", "page#r"]


def test_title_is_not_taken_from_code(tmp_path: Path) -> None:
    """A comment in code is not the title of the page."""
    (chunk,) = page(tmp_path, "```sh\n# a comment\n```\n# Title\ntext")
    assert chunk.title == "Title"


# Errors


def test_no_folder(tmp_path: Path) -> None:
    """A folder that is not there, or is a file, is an error."""
    (file := tmp_path / "page.md").write_text("# T\ntext")
    for folder in (tmp_path / "none", file):
        assert refused(folder) == f"corpus {folder}: no such directory; name a folder of Markdown (.md) pages"


@pytest.mark.parametrize("pages", [{}, {"notes.txt": "# T\ntext"}, {"page.md": ""}, {"page.md": "# T\n## S\n"}])
def test_no_pages(tmp_path: Path, pages: dict[str, str | bytes]) -> None:
    """A folder from which no chunk comes is an error that says what a page is."""
    write(tmp_path, pages)
    assert refused(tmp_path) == f"corpus {tmp_path}: holds no pages; write Markdown files that start with `# Title`"


@pytest.mark.parametrize(
    ("pages", "repeated", "at"),
    [
        ({"page.md": "# T\n## One\na\n## ONE!\nb"}, "page#one", "page.md"),
        ({"page.md": "# T\nlead\n## \nb"}, "page", "page.md"),
        ({"a#b.md": "# T\ntext", "a.md": "# T\n## B\ntext"}, "a#b", "a.md"),
    ],
)
def test_ids_are_unique(tmp_path: Path, pages: dict[str, str | bytes], repeated: str, at: str) -> None:
    """Two chunks with one id are refused, because a golden set could not tell them apart."""
    write(tmp_path, pages)
    assert refused(tmp_path) == (
        f"corpus {tmp_path}: two chunks have the id {repeated}; rename a heading in {tmp_path / at}"
    )


def test_unreadable_pages(tmp_path: Path) -> None:
    """A page that is not UTF-8, a directory called like a page, and a link to nothing are named."""
    write(tmp_path / "bytes", {"page.md": b"# T\ncaf\xe9"})
    (tmp_path / "folder" / "page.md").mkdir(parents=True)
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "page.md").symlink_to("gone.md")
    reasons = {
        "bytes": "'utf-8' codec can't decode byte 0xe9 in position 7: unexpected end of data",
        "folder": f"[Errno 21] Is a directory: '{tmp_path / 'folder' / 'page.md'}'",
        "link": f"[Errno 2] No such file or directory: '{tmp_path / 'link' / 'page.md'}'",
    }
    for name, reason in reasons.items():
        assert refused(tmp_path / name) == f"corpus page {tmp_path / name / 'page.md'}: cannot be read: {reason}"


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read every file")
def test_page_without_permission(tmp_path: Path) -> None:
    """A page that may not be read is named."""
    path = write(tmp_path, {"page.md": "# T\ntext"}) / "page.md"
    path.chmod(0)
    assert refused(tmp_path) == f"corpus page {path}: cannot be read: [Errno 13] Permission denied: '{path}'"


def test_links_stay_inside(tmp_path: Path) -> None:
    """A link to a page outside of the folder is refused; one inside it, and a link to the folder itself, are read."""
    corpus = write(tmp_path / "corpus", {"page.md": "# T\ntext"})
    (corpus / "same.md").symlink_to("page.md")
    (tmp_path / "alias").symlink_to(corpus)
    assert ids(read_corpus(tmp_path / "alias")) == ["page", "same"]
    (tmp_path / "secret.md").write_text("# T\ntext")
    (corpus / "out.md").symlink_to("../secret.md")
    assert refused(corpus) == (f"corpus {corpus}: {corpus / 'out.md'} links to a file outside of it; copy the page in")


def test_front_matter_is_left_out(tmp_path: Path) -> None:
    """What stands between two lines of `---` at the very start is about the page, not of it."""
    (chunk,) = page(tmp_path, "---\ntitle: x\n---\n# T\nlead\n")
    assert (chunk.id, chunk.title, chunk.text) == ("page", "T", "lead")
