"""Values that were configured as secrets: a server may send back what it was sent, and that must not be shown."""

from __future__ import annotations

import binascii
import json
import re
from base64 import b64decode
from collections.abc import Iterable, Mapping
from urllib.parse import quote

MASK = "***"

SHORTEST_SECRET = 8
"""Characters from which a configured value is taken out of what a server says; a shorter one hits common words."""

SHORTEST_IN_ANSWERS = 16
"""The same for what a model writes, which is judged and kept word by word: `anything` and `not-needed` are keys too."""

_WORDS = re.compile(r"[A-Za-z][a-z]*(?:[ _.-][A-Za-z]?[a-z]*)*")
_SECRET_NAME = re.compile(r"(?:^|_)(?:KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS?)$", re.IGNORECASE)
_PLACE = re.compile(r"[/~.]|[A-Za-z]:\\")


def maskable(value: str) -> bool:
    """Whether a value can be taken out of answers without hitting common words."""
    return len(value) >= (SHORTEST_IN_ANSWERS if _WORDS.fullmatch(value) else SHORTEST_SECRET)


def spellings(secrets: Iterable[str]) -> list[str]:
    """The secrets as they may be written elsewhere, in URLs and in JSON too; the longest first."""
    forms = {way for one in secrets for way in (one, quote(one, safe=""), json.dumps(one)[1:-1])}
    return sorted(forms, key=len, reverse=True)


def parts_of_header(value: str) -> set[str]:
    """The value of a header and what stands in it: the token without its scheme, the password behind `Basic`."""
    parts = {value, *value.split()}
    scheme, _, coded = value.partition(" ")
    if scheme.lower() == "basic":
        try:
            decoded = b64decode(coded, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            decoded = ""
        parts |= {decoded, decoded.partition(":")[2]}
    return parts


def secrets_of(environment: Mapping[str, str]) -> set[str]:
    """The values of the variables whose names say that they are secrets; the path of a file is none."""
    return {
        value.strip()
        for name, value in environment.items()
        if _SECRET_NAME.search(name) and not _PLACE.match(value) and "\n" not in value.strip()
    }
