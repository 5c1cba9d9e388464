"""Names and settings are logged with a run, so a secret in one of them is refused before anything is done."""

from __future__ import annotations

import re
from collections.abc import Iterable

from evaltrack.errors import UsageError
from evaltrack.privacy.masking import maskable
from evaltrack.privacy.secret_patterns import entropy, secret_spans

CURE = (
    "names and settings are logged with the run, so give a secret through the environment: a header of an http target "
    "as --target-option 'header.Authorization=Bearer MY_TOKEN_VARIABLE'; programs and functions read it themselves"
)

_USER = re.compile(r"://[^\s/?#@]*:[^\s/?#@]+@")
_SURE = (
    r"(?:pass(?:word|wd|phrase)?|pwd|secret|credential|api[_-]?key|(?:access|secret|private)[_-]?key"
    r"|(?:access|auth|api|bearer|refresh|id)[_-]?token)"
)
"""Names that only a secret has, whatever stands before them."""

_MAYBE = r"(?:key|token|auth|authorization|jwt|sig|signature)"
"""Names of secrets and of other things: their value must look like a secret too."""

_GIVEN = re.compile(
    rf"""(?:^|[\s"'?&;-])(?:[\w.-]*?[_.-])??(?:({_SURE})|({_MAYBE}))(?:\s*[=:]\s*|\s+)["']?([^\s"'&;]+)""",
    re.IGNORECASE,
)
"""A value given to a name: as an option, a variable, a header or in the query of a URL."""

SHORTEST, RANDOM = 6, 3.3
"""Characters of a value whose name is sure, and bits of entropy of each character of one whose name is not."""


def check_names(names: Iterable[tuple[str, str]]) -> None:
    """Refuse a secret in one of the texts, each given with what it is.

    Raises:
        UsageError: the message says where the secret stands, and does not repeat it.
    """
    for what, text in names:
        if holds_secret(text):
            raise UsageError(f"{what} holds what looks like a key or a password (not shown here); {CURE}")


def holds_secret(text: str) -> bool:
    """Whether a name holds a key's form, a password in a URL, or a value given to what is named like a secret."""
    if secret_spans(text) or ("://" in text and _USER.search(text)):
        return True
    return any(
        _is_secret(value, (sure or maybe).lower(), sure=bool(sure)) for sure, maybe, value in _GIVEN.findall(text)
    )


def _is_secret(value: str, name: str, *, sure: bool) -> bool:
    """Whether a value is one, and not the name of a variable or a file that holds it."""
    if len(value) < SHORTEST or value[0] in "{$/~.@<" or re.fullmatch(r"[A-Z][A-Z0-9_]*", value):
        return False
    has_both = re.search(r"\d", value) is not None and re.search(r"[A-Za-z]", value) is not None
    if sure or (name == "token" and has_both):
        return True
    looks_random = has_both and entropy(value) >= RANDOM and re.fullmatch(r"[\w.~+/=-]{16,}", value)
    return bool(maskable(value) and looks_random and "-" not in value[:8])
