"""Removes user, password and query values from URLs, alone or in a text, before they are shown."""

from __future__ import annotations

import re

MASK = "***"
"""Replaces a secret value."""

_URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,40}://\S*")
_USER = re.compile(r"(?<=://)[^/?#]*@|(?<=://)[^/?#@:]*:(?!\d{1,5}(?:[/?#]|$))[^@]*@")
"""The user and password before the host. SQLAlchemy accepts `/` and `?` in a password."""


def shown_url(url: str) -> str:
    """Return a URL for messages and files, without user and password and with `***` for each value of the query.

    A fragment (`#section`) stays, unless it looks like a query or the end of one. A URL without a scheme is read as if
    it had one.
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
    """Return a text with each URL in it as `shown_url` shows it."""
    return _URL.sub(lambda match: shown_url(match[0]), text) if "://" in text else text


def _without_values(query: str) -> str:
    """Return ``a=***&b=***``. A part without a name is masked as a whole."""
    pairs = re.split("[&;]", query) if query else []
    return "&".join(f"{pair.partition('=')[0]}={MASK}" if "=" in pair else MASK for pair in pairs)
