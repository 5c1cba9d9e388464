"""When a text that was configured is a secret: a server may send back what it was sent, and that must not be shown."""

from __future__ import annotations

SHORTEST_SECRET = 8
"""Characters from which a configured value is taken out of what a server says; a shorter one hits common words."""

SHORTEST_IN_ANSWERS = 16
"""The same for what a model writes, which is judged and kept word by word: `anything` and `not-needed` are keys too."""


def without(text: str, secret: str, shortest: int = SHORTEST_SECRET) -> str:
    """The text without the secret, if that is so long that it can be one."""
    return text.replace(secret, "***") if len(secret) >= shortest else text
