"""Reads the pages of a folder (.md, .rst, .txt, .html) as chunks with stable ids; one error lists all bad pages.

A page's id is its path without the suffix (`guides/schengen-visa`). A chunker splits it by heading or by words:

| chunker | chunks of a page | their ids |
| --- | --- | --- |
| `heading` | the text before the first heading, and the text under each heading | `page`, `page#overstay` |
| `words:200` | 200 words each | `page@0`, `page@1`, … |
| `words:200:40` | 200 words each, the first 40 repeat the last ones of the previous chunk | `page@0`, `page@1`, … |

Ids of headings resemble GitHub's anchors: lower case, punctuation dropped, spaces to one `-`, and `-1`, `-2` …
if a page repeats a heading. Such an id changes only when a heading does, so golden sets survive edits of
the text. An id of `words` counts from the beginning of the page: an edit shifts the text of all later chunks.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from unicodedata import normalize

from evaltrack.errors import Guide, UsageError, listed, printable


@dataclass(frozen=True)
class Chunk:
    """One passage: `id` (stable), `title` of its page, `heading` (empty for the lead), `url` (relative), `text`."""

    id: str
    title: str
    heading: str
    url: str
    text: str

    @property
    def page(self) -> str:
        """The path of its page."""
        return self.url.partition("#")[0]

    @property
    def headed_text(self) -> str:
        """The text with its heading, as `bm25:` returns it."""
        return f"{self.heading}\n\n{self.text}" if self.heading else self.text


def by_page(chunks: Iterable[Chunk]) -> dict[str, list[Chunk]]:
    """Return the chunks of each page, by its path, in their order."""
    pages: dict[str, list[Chunk]] = {}
    for chunk in chunks:
        pages.setdefault(chunk.page, []).append(chunk)
    return pages


@dataclass(frozen=True)
class Section:
    """The text under one heading; `heading` is empty for the lead, the text before the first heading.

    `anchor` is the link target in the page, empty for the page itself. None: it is made from the heading.
    """

    heading: str
    text: str
    anchor: str | None = None


@dataclass(frozen=True)
class Page:
    """The title of a page and its sections in order, including sections without text."""

    title: str
    sections: tuple[Section, ...]


class PageError(ValueError):
    """A page cannot be read; the message says why and how to correct it."""


Chunker = Callable[[Page, str, str], Iterator[Chunk]]
"""`(page, id of the page, its path) -> chunks`; the path is relative to the corpus."""

MAX_WORDS = 100_000
"""Maximum words of a chunk."""


def parse_chunker(text: str) -> Chunker:
    """Return the chunker for a setting: ``heading``, ``words:SIZE`` or ``words:SIZE:OVERLAP``, in words.

    Raises:
        UsageError: it has another form, or invalid sizes.
    """
    if text == "heading":
        return by_heading
    if not (numbers := re.fullmatch(r"words:([0-9]{1,6})(?::([0-9]{1,6}))?", text)):
        raise UsageError(f"chunk is `{text}`; write heading, words:SIZE or words:SIZE:OVERLAP, such as words:200:40")
    size, overlap = int(numbers[1]), int(numbers[2] or 0)
    if not 1 <= size <= MAX_WORDS:
        raise UsageError(f"chunk is `{text}`; write a size from 1 to {MAX_WORDS:,} words")
    if overlap >= size:
        raise UsageError(f"chunk is `{text}`; write an overlap that is smaller than the size, at most {size - 1}")
    return partial(by_words, size=size, overlap=overlap)


def by_heading(page: Page, page_id: str, path: str) -> Iterator[Chunk]:
    """Yield a chunk for each section that has text."""
    repeats: dict[str, int] = {}
    for section in page.sections:
        if section.text:
            own = _anchor(section.heading, repeats)
            place = own if section.anchor is None else section.anchor
            yield Chunk(page_id + _fragment(own), page.title, section.heading, path + _fragment(place), section.text)


def by_words(page: Page, page_id: str, path: str, *, size: int, overlap: int) -> Iterator[Chunk]:
    """Yield a chunk for each `size` words of the page, including headings. Words are separated by whitespace.

    Each chunk begins with the last `overlap` words of the previous one. Line breaks are kept.
    """
    texts = (text for section in page.sections if section.text for text in (section.heading, section.text) if text)
    text = "\n\n".join(texts)
    words = [word.span() for word in re.finditer(r"\S+", text)]
    starts = range(0, max(len(words) - overlap, 1), size - overlap) if words else ()
    for number, first in enumerate(starts):
        last = min(first + size, len(words)) - 1
        yield Chunk(f"{page_id}@{number}", page.title, "", path, text[words[first][0] : words[last][1]])


def _anchor(heading: str, repeats: dict[str, int]) -> str:
    """Return a unique anchor for the next heading of a page; empty for the lead."""
    first = _slug(heading) if heading or "" in repeats else ""
    anchor = first
    while anchor in repeats:
        repeats[first] += 1
        anchor = f"{first}-{repeats[first]}"
    repeats[anchor] = 0
    return anchor


def _fragment(anchor: str) -> str:
    return f"#{anchor}" if anchor else ""


def _slug(heading: str) -> str:
    return re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", normalize("NFC", heading).lower()).strip()) or "section"


READERS = {
    ".htm": "evaltrack.golden.corpus.html_page:read_html",
    ".html": "evaltrack.golden.corpus.html_page:read_html",
    ".md": "evaltrack.golden.corpus.markdown_page:read_markdown",
    ".rst": "evaltrack.golden.corpus.rst_page:read_rst",
    ".txt": "evaltrack.golden.corpus:read_text",
}
"""The reader of each suffix: `(text, name of the file) -> Page`. It is imported only if such a page exists."""

SPHINX_SOURCES = "_sources"
"""The folder in which Sphinx stores the source of each HTML page as `.txt`."""


def parse_suffixes(text: str) -> frozenset[str]:
    """Return the suffixes for a setting such as ``html`` or ``md,rst``; all supported ones if it is empty.

    Raises:
        UsageError: a suffix is not supported.
    """
    if not text:
        return frozenset(READERS)
    suffixes = frozenset(f".{name.strip().removeprefix('.')}" for name in text.split(","))
    if not suffixes <= READERS.keys():
        known = ", ".join(suffix[1:] for suffix in READERS)
        raise UsageError(f"files is `{text}`; write one or more of {known}, with commas between them")
    return suffixes


def read_corpus(folder: Path, chunker: Chunker = by_heading, suffixes: Collection[str] = tuple(READERS)) -> list[Chunk]:
    """Return all chunks of the pages under `folder`, in the order of their paths.

    Args:
        folder: The folder of the pages, including subfolders.
        chunker: Splits a page into chunks.
        suffixes: The suffixes of pages.

    Raises:
        UsageError: there is no such folder, it holds no text, or pages cannot be read or share an id; one line per
            problem.
    """
    if not folder.is_dir():
        raise UsageError(
            f"corpus folder `{folder}` does not exist; name a folder of pages ({', '.join(READERS)})", guide=Guide.PAGES
        )
    chunks, problems = dict[str, Chunk](), list[str]()
    for page_id, paths in _paths_by_id(folder, suffixes, problems).items():
        if len(paths) > 1:
            problems.append(_same_page(folder, page_id, paths))
        for path in paths:
            try:
                page = _page(path, folder)
            except PageError as error:
                problems.append(f"corpus page {path}: {error}")
                continue
            for chunk in chunker(page, page_id, path.relative_to(folder).as_posix()):
                if chunk.id in chunks and len(paths) == 1:
                    problems.append(f"corpus page {path}: another page has a chunk `{chunk.id}` too; rename a file")
                chunks[chunk.id] = chunk
    if problems:
        raise UsageError(listed([printable(problem) for problem in problems]))
    if not chunks:
        raise UsageError(f"corpus {folder}: holds no pages with text ({', '.join(sorted(suffixes))})")
    return list(chunks.values())


def domain_folders(folder: Path, domains: Iterable[str] = ()) -> dict[str, Path]:
    """Return the subfolders by name; each name is a domain. Empty if one of `domains` has no folder."""
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    folders = {normalize("NFC", path.name): path for path in paths if path.is_dir()}
    return folders if folders.keys() >= set(domains) else {}


def _paths_by_id(folder: Path, suffixes: Collection[str], problems: list[str]) -> dict[str, list[Path]]:
    """Return the files of pages by the page's id; more than one file if several share an id."""
    paths: dict[str, list[Path]] = {}
    for path in sorted(_pages(folder, suffixes, problems)):
        paths.setdefault(normalize("NFC", path.relative_to(folder).with_suffix("").as_posix()), []).append(path)
    return paths


def _pages(folder: Path, suffixes: Collection[str], problems: list[str]) -> Iterator[Path]:
    def add_problem(error: OSError) -> None:
        problems.append(f"corpus folder {error.filename}: cannot be read: {error.strerror}; correct or remove it")

    for place, _, names in os.walk(folder, onerror=add_problem):
        copies = SPHINX_SOURCES in Path(place).relative_to(folder).parts
        for path in (Path(place, name) for name in names):
            if path.suffix in suffixes and not (copies and path.suffix == ".txt"):
                yield path


def _same_page(folder: Path, page_id: str, paths: list[Path]) -> str:
    names = " and ".join(path.name for path in paths)
    cure = f"rename or remove one, or read one format only (files={paths[0].suffix[1:]})"
    return f"corpus {folder}: the page `{page_id}` is there as {names}; {cure}"


def _page(path: Path, folder: Path) -> Page:
    try:
        if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
            raise PageError("links to a file outside of the folder; copy the page in")
        str(path.relative_to(folder)).encode()
        text = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n")
    except OSError as error:
        raise PageError(f"cannot be read: {error.strerror}; correct or remove it") from None
    except UnicodeEncodeError:
        raise PageError("its path is not UTF-8; rename it") from None
    except UnicodeDecodeError as error:
        where = f"byte 0x{error.object[error.start]:02x} at position {error.start}"
        raise PageError(f"is not UTF-8 ({where}); save it as UTF-8") from None
    read: Callable[[str, str], Page] = resolve_name(READERS[path.suffix])
    return read(text, path.stem)


def read_text(text: str, name: str) -> Page:
    """Return the page in a text file; `name` (of the file) is the title."""
    return Page(name, (Section("", text.strip()),))
