"""Defines pages and their sections, and the chunkers that split a page into chunks by heading or by words.

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

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from unicodedata import normalize

from evaltrack.errors import UsageError


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
