"""URLs as they may be shown: without user and password, and without the values of their query. Pure."""

from __future__ import annotations

import re

MASK = "***"
"""In place of a value that is secret."""

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,40}://\S*")
_USER = re.compile(r"(?<=://)[^/?#]*@|(?<=://)[^/?#@:]*:(?!\d{1,5}(?:[/?#]|$))[^@]*@")
"""What stands before the host; SQLAlchemy also takes a password with a `/` or a `?` in it."""


def shown_url(url: str) -> str:
    """One URL, fit for messages and files: user and password are left out, and each value of the query is `***`.

    A place in a page (`#section`) stays, unless it is a query too, or may be the end of one. What has no scheme is read
    as if it had one.
    """
    if "://" not in url:
        return shown_url(f"://{url}").removeprefix("://")
    address, *rest = re.split(r"([?#])", _USER.sub("", url, count=1))
    signs, parts = rest[::2], rest[1::2]
    return address + "".join(
        sign + (part if signs[0] == "#" and "=" not in part else _without_values(part))
        for sign, part in zip(signs, parts, strict=True)
    )


def shown_text(text: str) -> str:
    """A text with every URL in it as `shown_url` gives it."""
    return _URL.sub(lambda match: shown_url(match[0]), text) if "://" in text else text


def _without_values(query: str) -> str:
    """`a=***&b=***`; what has no name is a value itself."""
    pairs = re.split("[&;]", query) if query else []
    return "&".join(f"{pair.partition('=')[0]}={MASK}" if "=" in pair else MASK for pair in pairs)
