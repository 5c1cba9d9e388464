"""Whether what a judge quotes stands in the text that it was shown."""

from __future__ import annotations

import re
from unicodedata import category, normalize

from evaltrack.judges.neutral_text import BREAK

SIGNS = str.maketrans("’‘‚“”„«»‐‑‒–—−", "'''" + 5 * '"' + 6 * "-")
"""Quotation marks and dashes in the form they are compared in."""


def occurs(quote: str, text: str) -> bool:
    """Whether the words stand in the `plain` text, as whole ones; markup, space and forms of marks do not count."""
    quoted = quoted_words(quote)
    return bool(quoted) and re.search(rf"(?<!\w){re.escape(quoted)}(?!\w)", text) is not None


def quoted_words(quote: str) -> str:
    """The quote without what a judge may have put around it."""
    return plain(quote).strip(" .,;:'\"")


def plain(text: str) -> str:
    """A text without markup, what cannot be seen, and what breaks tags."""
    text = "".join(char for char in normalize("NFKC", text) if category(char) != "Cf")
    return " ".join(re.sub(rf"[*_`#>{BREAK}]", "", text.casefold().translate(SIGNS)).split())
