"""Errors of both sides, those with one message together."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import pandas as pd

_NUMBER = re.compile(r"(?<!\d)(?<!HTTP )(?<!status )(?<!status code )\d+")
"""A number in a message, but for the status of a response: 500 is another error than 503."""


@dataclass(frozen=True)
class ErrorCount:
    """How many common questions of one side ended in errors with this message."""

    side: Literal["baseline", "candidate"]
    message: str
    count: int


def message_kind(message: str) -> str:
    """What messages have in common that differ in numbers alone, as of a port or of seconds, not of an HTTP status."""
    return _NUMBER.sub("#", message)


def error_counts(frame: pd.DataFrame) -> tuple[ErrorCount, ...]:
    """How often each message ended a common question, baseline first, the most frequent first.

    Messages of one kind count as one; the first of them is shown.
    """
    errors: list[ErrorCount] = []
    sides: tuple[tuple[str, Literal["baseline", "candidate"]], ...] = (("b", "baseline"), ("c", "candidate"))
    for side, whose in sides:
        messages = frame[f"error_{side}"].dropna()
        first = dict[str, str]()
        counts = Counter(first.setdefault(message_kind(text), text) for text in messages.astype(str))
        errors += [ErrorCount(whose, text, count) for text, count in counts.most_common()]
    return tuple(errors)
