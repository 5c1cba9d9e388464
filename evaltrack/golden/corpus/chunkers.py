"""A page with its sections, and the ways in which it becomes chunks.

| chunker | chunks of a page | their ids |
| --- | --- | --- |
| `heading` | the text before the first heading, and that under each | `page`, `page#overstay` |
| `words:200` | 200 words each | `page@0`, `page@1`, … |
| `words:200:40` | 200 words each, the first 40 of which are the last of the one before | `page@0`, `page@1`, … |

Headings become ids much as GitHub makes anchors: lower case, punctuation dropped, spaces to one `-`, and `-1`, `-2` …
at one that repeats another of its page. Such an id changes only when a heading does, so golden sets survive edits of
the text. An id of `words` counts from the beginning of the page: an edit moves the text of those behind it.
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
        """The text under its heading, as `bm25:` returns it."""
        return f"{self.heading}\n\n{self.text}" if self.heading else self.text


def by_page(chunks: Iterable[Chunk]) -> dict[str, list[Chunk]]:
    """The chunks of each page, by its path, in their order."""
    pages: dict[str, list[Chunk]] = {}
    for chunk in chunks:
        pages.setdefault(chunk.page, []).append(chunk)
    return pages


@dataclass(frozen=True)
class Section:
    """The text under one heading; `heading` is empty for the lead, the text before the first.

    `anchor` is the place in the page that a link leads to, empty for the page itself. None: it is made of the heading.
    """

    heading: str
    text: str
    anchor: str | None = None


@dataclass(frozen=True)
class Page:
    """The title of a page, and its sections in their order; those without text are among them."""

    title: str
    sections: tuple[Section, ...]


class PageError(ValueError):
    """A page cannot be read: what is wrong, and how to cure it."""


Chunker = Callable[[Page, str, str], Iterator[Chunk]]
"""`(page, id of the page, its path) -> chunks`; the path is relative to the corpus."""

MAX_WORDS = 100_000
"""Words of a chunk at most; a question is not answered by more."""


def parse_chunker(text: str) -> Chunker:
    """The chunker that a setting names: ``heading``, ``words:SIZE`` or ``words:SIZE:OVERLAP``, in words.

    Raises:
        UsageError: it is none of these, or the sizes cannot be.
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
    """A chunk for each section that has text."""
    repeats: dict[str, int] = {}
    for section in page.sections:
        if section.text:
            own = _anchor(section.heading, repeats)
            place = own if section.anchor is None else section.anchor
            yield Chunk(page_id + _fragment(own), page.title, section.heading, path + _fragment(place), section.text)


def by_words(page: Page, page_id: str, path: str, *, size: int, overlap: int) -> Iterator[Chunk]:
    """A chunk for each `size` words of the page, headings among them; words are what is between spaces.

    Each chunk begins with the last `overlap` words of the one before, and keeps its lines as they are.
    """
    texts = (text for section in page.sections if section.text for text in (section.heading, section.text) if text)
    text = "\n\n".join(texts)
    words = [word.span() for word in re.finditer(r"\S+", text)]
    starts = range(0, max(len(words) - overlap, 1), size - overlap) if words else ()
    for number, first in enumerate(starts):
        last = min(first + size, len(words)) - 1
        yield Chunk(f"{page_id}@{number}", page.title, "", path, text[words[first][0] : words[last][1]])


def _anchor(heading: str, repeats: dict[str, int]) -> str:
    """The anchor of the next heading of a page, each other than those before it; that of the lead is empty."""
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
