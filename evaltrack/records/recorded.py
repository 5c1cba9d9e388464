"""What recorded responses and recorded verdicts have in common: a line is of one question, in one of its wordings."""

from __future__ import annotations

from copy import copy
from typing import Any, Self

from evaltrack.records.question import MAX_VARIANTS

WORDINGS = "0 is `question`, 1 its first variant"


class RecordedLineError(ValueError):
    """A line does not say which question it is of, or which wording of it."""


class OneWording:
    """A recording from which what belongs to one `wording` is read."""

    wording = 0

    def on_wording(self, wording: int) -> Self:
        """The same recording, read for a wording."""
        if wording == self.wording:
            return self
        other = copy(self)
        other.wording = wording
        return other


def take_place(line: dict[str, Any], deed: str) -> tuple[str, int]:
    """Take the question's id and the wording out of a line; `deed` is what was done with the question.

    Raises:
        RecordedLineError: it has no id, or no such wording.
    """
    key, wording = line.pop("id", None), line.pop("wording", 0)
    if isinstance(key, bool) or not isinstance(key, str | int):
        raise RecordedLineError(f"`id` is missing; name the question that was {deed}")
    if type(wording) is not int or not 0 <= wording <= MAX_VARIANTS:
        raise RecordedLineError(f"`wording` is no whole number from 0 to {MAX_VARIANTS}: {WORDINGS}")
    return str(key), wording


def named_variant(preposition: str, wording: int) -> str:
    """`` to variant 2``, for errors; nothing for `question` itself."""
    return f" {preposition} variant {wording}" if wording else ""
