"""Foreign text and foreign links, fit for a page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from markupsafe import Markup

_HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Control characters but for tab and new line, marks that reorder what is around them, halves of surrogate pairs."""


def shown(text: str | None, limit: int) -> str:
    """The text in at most `limit` characters, with a replacement character for each that could do harm."""
    if not text:
        return ""
    clipped = text if len(text) <= limit else text[: limit - 1] + "…"
    if clipped.isprintable():  # as most texts are; none of these characters is
        return clipped
    return _HARMFUL.sub("\N{REPLACEMENT CHARACTER}", clipped.replace("\r\n", "\n"))


def with_code(text: str) -> Markup:
    """A sentence of ours as HTML, what stands in it between backticks as code. All of it is escaped."""
    from markupsafe import Markup, escape

    parts = re.split(r"`([^`\n]+)`", text)
    pieces = (Markup("<code>{}</code>").format(part) if place % 2 else escape(part) for place, part in enumerate(parts))
    return Markup("").join(pieces)


def safe_link(url: str | None) -> str | None:
    """The link if it leads to the web or to a file of this machine, else None, as of `javascript:`.

    For a file on another machine (`file://host/share`, `file:////host/share`) a browser may send the reader's password.
    """
    if not url or len(url) > 2000 or _HARMFUL.search(url):
        return None
    try:
        parts = urlsplit(url)
    except ValueError:
        return None
    if parts.scheme == "file":
        return url if not parts.netloc and re.match(r"/[^/\\]", parts.path) else None
    return url if parts.scheme in ("http", "https") and parts.netloc else None
