"""The server that is asked: its key and address, from the variables that the OpenAI client itself reads."""

from __future__ import annotations

import os
import re
from urllib.parse import urlsplit

from evaltrack.errors import UsageError

OPENAI = "https://api.openai.com/v1"
NO_KEY = "none"
"""Sent to local servers where no key is set; the client refuses to work without one."""


def has_server() -> bool:
    """Whether `OPENAI_API_KEY` or `OPENAI_BASE_URL` is set, so that a model can be asked at all."""
    return bool(_value("OPENAI_API_KEY") or _value("OPENAI_BASE_URL"))


def key() -> str:
    """The key, fit for a header.

    Raises:
        UsageError: it holds a character that no header can carry; the message does not show it.
    """
    value = _value("OPENAI_API_KEY")
    if not re.fullmatch(r"[!-~]*", value):
        raise UsageError("OPENAI_API_KEY holds a space, a line break or a sign outside ASCII; set it again")
    return value or NO_KEY


def base_url() -> str:
    """The address below which the server's `/chat/completions` lies.

    Raises:
        UsageError: it is no HTTP address.
    """
    value = _value("OPENAI_BASE_URL") or OPENAI
    if not re.match(r"https?://[^/]", value):
        raise UsageError(f"OPENAI_BASE_URL is `{value}`; write http://HOST/v1 or https://HOST/v1")
    return value


def shown_url() -> str:
    """The address without user and password, for messages."""
    parts = urlsplit(base_url())
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def without_key(text: str) -> str:
    """A foreign text that may be shown or kept: a server may repeat the key that it was sent."""
    value = _value("OPENAI_API_KEY")
    return text.replace(value, "***") if value else text


def _value(variable: str) -> str:
    return (os.environ.get(variable) or "").strip()
