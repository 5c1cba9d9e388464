"""The nouns of a corpus: a page with its sections, and the chunk that is indexed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


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
    """What stands under one heading; `heading` is empty for the lead, the text before the first.

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
