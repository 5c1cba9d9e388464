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


CASES = data("corpora.json")
"""The texts of files by name, and their chunks: id, title, heading, URL and text."""


@pytest.mark.parametrize(("files", "chunks"), CASES.values(), ids=CASES)
def test_files_become_chunks(tmp_path: Path, files: dict[str, str], chunks: list[list[str]]) -> None:
    """The text before the first heading is the lead, and each heading starts a chunk that knows its page."""
    write(tmp_path, {name: text.encode(errors="surrogateescape") for name, text in files.items()})
    assert read_corpus(tmp_path) == [Chunk(*chunk) for chunk in chunks]


def test_ids_do_not_depend_on_the_text(tmp_path: Path) -> None:
    before = page(tmp_path, "# T\nlead\n## One\na\n## Two\nb")
    after = page(tmp_path, "# Another title\nnew lead\n\nmore\n## Two\nc\n\n## One\nd\n")
    assert sorted(ids(before)) == sorted(ids(after)) == ["page", "page#one", "page#two"]


# Formats


def test_formats_may_be_chosen(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "# T\n## S\nx", "b.rst": "x", "c.txt": "x", "d.html": "<h2>S</h2>x", "e.htm": "x"})
    assert ids(read_corpus(tmp_path, suffixes=parse_suffixes("html,htm"))) == ["d#s", "e"]
    assert ids(read_corpus(tmp_path, suffixes=parse_suffixes(".md, txt"))) == ["a#s", "c"]


@pytest.mark.parametrize("text", ["pdf", "md,", "MD", ","])
def test_formats_that_cannot_be_read(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_suffixes(text)
    known = "htm, html, md, rst, txt"
    assert str(caught.value) == f"files is `{text}`; write one or more of {known}, with commas between them"


# Errors


BLANK = {"a.html": "", "b.rst": "", "c.txt": " \n", "d.htm": "<script>x</script><nav>x</nav>", "e.md": "# T\n## S\n"}
PAGES = "(.htm, .html, .md, .rst, .txt)"


@pytest.mark.parametrize("pages", [{}, {"notes.tex": "# T\ntext"}, BLANK, {"page.md/x.tex": ""}])
def test_a_folder_without_pages_says_what_a_page_is(tmp_path: Path, pages: Mapping[str, str | bytes]) -> None:
    write(tmp_path, pages)
    assert refused(tmp_path) == f"corpus {tmp_path}: holds no pages with text {PAGES}"
    for folder in (tmp_path / "none", put(tmp_path / "file.md", "# T\ntext")):
        assert refused(folder) == f"corpus folder `{folder}` does not exist; name a folder of pages {PAGES}"


def test_all_problems_of_a_folder_are_one_error(tmp_path: Path) -> None:
    corpus = write(
        tmp_path / "corpus",
        {
            "a.md": "# T\ntext\n## B\nx",
            "a#b.md": "# T\ntext",
            "b.md": "# T\ntext",
            "b.txt": "text",
            "bytes.md": b"# T\ncaf\xe9",
            "deep.rst": "- " * 3000 + "x",
            "ok.md": "# T\ntext",
        },
    )
    (corpus / "gone.md").symlink_to("nowhere.md")
    (corpus / "loop.md").symlink_to("loop.md")
    (corpus / "out.md").symlink_to("../secret.md")
    (tmp_path / "secret.md").write_text("# T\ntext")
    write(tmp_path, {os.fsdecode(b"corpus/caf\xe9.md"): "x"})
    assert refused(corpus).splitlines() == [
        f"corpus page {corpus}/a.md: another page has a chunk `a#b` too; rename a file",
        f"corpus {corpus}: the page `b` is there as b.md and b.txt; rename or remove one, "
        "or read one format only (files=md)",
        f"corpus page {corpus}/bytes.md: is not UTF-8 (byte 0xe9 at position 7); save it as UTF-8",
        f"corpus page {corpus}/caf\N{REPLACEMENT CHARACTER}.md: its path is not UTF-8; rename it",
        f"corpus page {corpus}/deep.rst: docutils cannot read it: nested too deeply; correct it, or rename it to .txt",
        f"corpus page {corpus}/gone.md: cannot be read: No such file or directory; correct or remove it",
        f"corpus page {corpus}/loop.md: cannot be read: Too many levels of symbolic links; correct or remove it",
        f"corpus page {corpus}/out.md: links to a file outside of the folder; copy the page in",
    ]


def test_what_is_wrong_with_very_many_pages_is_bounded(tmp_path: Path) -> None:
    lines = refused(write(tmp_path, {f"{number:02}.md": b"\xff" for number in range(25)})).splitlines()
    assert (len(lines), lines[-1]) == (21, "... and 5 more problems")


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


def test_a_front_matter_that_is_nested_without_end(tmp_path: Path) -> None:
    (chunk,) = page(tmp_path, f"---\na: {'[' * 30_000}\n---\ntext\n")
    assert (chunk.title, chunk.text) == ("page", "text")
