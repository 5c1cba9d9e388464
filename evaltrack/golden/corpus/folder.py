"""Reads the pages of a folder (.md, .rst, .txt, .html) as chunks; one error lists all bad pages."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from pkgutil import resolve_name
from unicodedata import normalize

from evaltrack.errors import Guide, UsageError, listed, printable
from evaltrack.golden.corpus.chunkers import Chunk, Chunker, Page, PageError, Section, by_heading

READERS = {
    ".htm": "html_page:read_html",
    ".html": "html_page:read_html",
    ".md": "markdown_page:read_markdown",
    ".rst": "rst_page:read_rst",
    ".txt": "folder:read_text",
}
"""The reader of each suffix: `(text, name of the file) -> Page`. It is imported only if such a page exists."""

CHARSET = re.compile(
    rb"""<meta[^>]{1,200}charset=["']?((?:ascii|big5|cp|euc|gb|iso|koi8|latin|mac|shift|us-|utf-16|windows)[\w:-]{0,40})""",
    re.IGNORECASE | re.ASCII,
)
"""The charset that HTML declares. Python's other codecs are excluded, as some are very slow."""

MAX_PAGE_BYTES = 32 * 2**20

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
        str(path.relative_to(folder)).encode()
        content = _content(path, folder)
    except OSError as error:
        raise PageError(f"cannot be read: {error.strerror}; correct or remove it") from None
    except UnicodeEncodeError:
        raise PageError("its path is not UTF-8; rename it") from None
    text = _text(content, path.suffix).replace("\r\n", "\n").replace("\r", "\n")
    read: Callable[[str, str], Page] = resolve_name(f"{__package__}.{READERS[path.suffix]}")
    return read(text, path.stem)


def _content(path: Path, folder: Path) -> bytes:
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder)):
        raise PageError("links to a file outside of the folder; copy the page in")
    state = path.stat()
    if not stat.S_ISREG(state.st_mode):
        raise PageError("is not a regular file (a pipe?); remove it")
    if state.st_size > MAX_PAGE_BYTES:
        raise PageError(f"is larger than {MAX_PAGE_BYTES // 2**20} MB; part it into several pages")
    return path.read_bytes()


def _text(content: bytes, suffix: str) -> str:
    """Decode a page as UTF-8, or HTML that is not UTF-8 in the charset that it declares."""
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        declared = CHARSET.search(content, 0, 1024) if suffix in (".html", ".htm") else None
        where = f"byte 0x{content[error.start]:02x} at position {error.start}"
    if not declared:
        raise PageError(f"is not UTF-8 ({where}); save it as UTF-8")
    charset = declared[1].decode()
    try:
        return content.decode(charset)
    except (LookupError, ValueError):
        raise PageError(f"is neither UTF-8 nor {charset}, which it declares; save it as UTF-8") from None


def read_text(text: str, name: str) -> Page:
    """Return the page in a text file; `name` (of the file) is the title."""
    return Page(name, (Section("", text.strip()),))
