"""Plain text: one section, whatever it looks like."""

from __future__ import annotations

from evaltrack.golden.corpus.chunk import Page, Section


def read_text(text: str, name: str) -> Page:
    """The page that a file called `name` holds; the name is the title."""
    return Page(name, (Section("", text.strip()),))
