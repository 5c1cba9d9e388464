"""The nouns of a corpus: a page with its sections, and the chunk that is indexed."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Chunk:
    """One passage: `id` (stable), `title` of its page, `heading` (empty for the lead), `url` (relative), `text`."""

    id: str
    title: str
    heading: str
    url: str
    text: str


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
