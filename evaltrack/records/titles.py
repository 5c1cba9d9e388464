"""The form in which titles of sources compare."""

from __future__ import annotations

import unicodedata


def title_key(title: str) -> str:
    """The form in which source titles are compared: Unicode NFC, case-folded, with `_` read as a space."""
    folded = unicodedata.normalize("NFC", title).casefold().replace("_", " ")
    return unicodedata.normalize("NFC", folded).strip()
