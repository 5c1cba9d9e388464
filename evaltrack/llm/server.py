"""The server that is asked: its key and address, from the variables that the OpenAI client itself reads."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from evaltrack.errors import UsageError
from evaltrack.privacy.addresses import MASK, shown_url
from evaltrack.privacy.redaction import SHORTEST_SECRET

OPENAI = "https://api.openai.com/v1"
NO_KEY = "none"
"""Sent to local servers where no key is set; the client refuses to work without one."""


@dataclass(frozen=True)
class ModelServer:
    """Where a model is asked.

    Attributes:
        address: Below which `/chat/completions` lies.
        key: Sent as the bearer's token.
        key_source: What sets the key, for messages.
        address_source: What sets address and names, for messages.
        authorization: A header in the place of the key; empty for none.
    """

    address: str
    key: str = field(repr=False)
    key_source: str = "OPENAI_API_KEY"
    address_source: str = "OPENAI_BASE_URL"
    authorization: str = field(default="", repr=False)

    @property
    def shown(self) -> str:
        """The address for messages, without user, password and what its query holds."""
        return shown_url(self.address)


def usual_server() -> ModelServer:
    """The server that `OPENAI_API_KEY` and `OPENAI_BASE_URL` name.

    Raises:
        UsageError: one of them is malformed; the message shows neither key, nor user, password and query of the URL.
    """
    address, key = _value("OPENAI_BASE_URL") or OPENAI, _value("OPENAI_API_KEY")
    if not re.match(r"https?://[^/]", address) or not _is_url(address):
        raise UsageError(f"OPENAI_BASE_URL is `{shown_url(address)}`; write http://HOST/v1 or https://HOST/v1")
    if not re.fullmatch(r"[!-~]*", key):
        raise UsageError("OPENAI_API_KEY holds a space, a line break or a sign outside ASCII; set it again")
    return ModelServer(address, key or NO_KEY)


def has_server() -> bool:
    """Whether `OPENAI_API_KEY` or `OPENAI_BASE_URL` is set, so that a model can be asked at all."""
    return bool(_value("OPENAI_API_KEY") or _value("OPENAI_BASE_URL"))


def without_key(text: str, shortest: int = SHORTEST_SECRET) -> str:
    """A foreign text that may be shown or kept: a server may repeat the key that it was sent.

    A key below `shortest` characters is left in: local servers take any, and `x` or `test` is in every other text.
    """
    key = _value("OPENAI_API_KEY")
    return text.replace(key, MASK) if len(key) >= shortest else text


def _is_url(value: str) -> bool:
    """Whether host and port can be read at all."""
    try:
        return urlsplit(value).port != 0
    except ValueError:
        return False


def _value(variable: str) -> str:
    return (os.environ.get(variable) or "").strip()
