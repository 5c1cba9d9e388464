"""Read a folder of Markdown pages as chunks with stable ids.

A page is a `.md` file that starts with `# Title`. The text before its first `## Heading` is one chunk, whose id is the
file's path without the suffix (`schengen-visa`); each `## Heading` starts another (`schengen-visa#overstay`). Headings
become ids much as anchors do: lower case, punctuation dropped, spaces to one `-`. The id changes only when the heading
does, so golden sets survive edits of the text. A front matter between two lines of `---` is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from evaltrack.errors import UsageError


@dataclass(frozen=True)
class Chunk:
    """One passage: `id` (stable), `title` of its page, `heading` (empty for the lead), `url` (relative), `text`."""

    id: str
    title: str
    heading: str
    url: str
    text: str


def read_corpus(folder: Path) -> list[Chunk]:
    """All chunks of the pages under `folder`, in the order of their paths.

    Raises:
        UsageError: there is no such folder, it holds no pages, or two chunks share an id.
    """
    if not folder.is_dir():
        raise UsageError(f"corpus {folder}: no such directory; name a folder of Markdown (.md) pages")
    root = folder.resolve()
    chunks: dict[str, Chunk] = {}
    for path in sorted(folder.rglob("*.md")):
        if not path.resolve().is_relative_to(root):
            raise UsageError(f"corpus {folder}: {path} links to a file outside of it; copy the page in")
        for chunk in _page(path, path.relative_to(folder).with_suffix("").as_posix()):
            if chunk.id in chunks:
                raise UsageError(f"corpus {folder}: two chunks have the id {chunk.id}; rename a heading in {path}")
            chunks[chunk.id] = chunk
    if not chunks:
        raise UsageError(f"corpus {folder}: holds no pages; write Markdown files that start with `# Title`")
    return list(chunks.values())


def domain_folders(folder: Path, domains: Iterable[str] = ()) -> dict[str, Path]:
    """The folders in `folder` by their names, which are domains; none where one of `domains` has no folder."""
    folders = {path.name: path for path in sorted(folder.iterdir()) if path.is_dir()} if folder.is_dir() else {}
    return folders if folders.keys() >= set(domains) else {}


def _page(path: Path, page_id: str) -> Iterator[Chunk]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"corpus page {path}: cannot be read: {error}") from None
    if front := re.match(r"---\n.*?\n---\n", text, re.DOTALL):
        text = text[front.end() :]
    lines, headings = text.split("\n"), list(_headings(text))
    title = next((words for _, _, level, words in headings if level == 1), path.stem)
    for start, end, level, _ in headings:
        if level == 1:
            lines[start:end] = [""] * (end - start)
    sections = [(start, end, words) for start, end, level, words in headings if level == 2]
    starts = [0, *(end for _, end, _ in sections)]
    ends = [*(start for start, _, _ in sections), len(lines)]
    for heading, start, end in zip(["", *(words for *_, words in sections)], starts, ends, strict=True):
        if body := "\n".join(lines[start:end]).strip():
            anchor = f"#{_slug(heading)}" if heading else ""
            yield Chunk(page_id + anchor, title, heading, f"{page_id}.md{anchor}", body)


def _headings(text: str) -> Iterator[tuple[int, int, int, str]]:
    """First line, line after the last, level and words of each heading, as CommonMark reads it (not those in code)."""
    from markdown_it import MarkdownIt

    tokens = MarkdownIt("commonmark").parse(text)
    for token, inline in pairwise(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map:
            start, end = token.map
            yield start, end, int(token.tag[1:]), inline.content.strip()


def _slug(heading: str) -> str:
    return re.sub(r"\s+", "-", re.sub(r"[^\w\s-]", "", heading.lower()).strip()) or "section"
