"""What a target or a judge raised, as text: whatever object it is, reading it raises nothing."""

from __future__ import annotations

import signal

from evaltrack.records import Usage

READ_LIMIT = 100_000
"""Characters looked at of an error's message."""


class RaisedElsewhereError(Exception):
    """What a user's function raised in a process of its own; the message begins with the type, as `described` does."""

    def __init__(self, text: str, usage: Usage | None = None) -> None:
        super().__init__(text)
        self.usage = usage


def described(error: BaseException) -> str:
    """The type of an error and its message."""
    message = _message(error)
    return message if isinstance(error, RaisedElsewhereError) else f"{type(error).__name__}: {message}"


def usage_of(outcome: object) -> Usage | None:
    """What a call that failed, or came late, has cost, as far as it tells."""
    try:
        usage = getattr(outcome, "usage", None)
    except Exception:
        return None
    return usage if isinstance(usage, Usage) else None


def _message(error: BaseException) -> str:
    try:
        return str(error)[:READ_LIMIT]
    except Exception:
        return "(its message cannot be read)"


def ending(code: int) -> str:
    """How a process ended: ``ended with exit code 3``, ``was ended by SIGSEGV``."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
