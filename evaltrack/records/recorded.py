"""What recorded responses and recorded verdicts have in common: a line is of one question, in one of its wordings."""

from __future__ import annotations

import re
from collections.abc import Hashable
from copy import copy
from typing import Any, Self

from evaltrack.records.finding_words import id_words
from evaltrack.records.question import MAX_VARIANTS

ID_NAME = re.compile(r"(?i)(?:^|[_-])id$|^q(?:uestion)?id$")
"""Names of a field that may hold the id of a question."""

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
    if "id" not in line:
        near = next((name for name in line if ID_NAME.search(name)), "")
        meant = f"rename `{near}`" if near else f"name the question that was {deed}"
        raise RecordedLineError(f"`id` is missing; {meant}")
    key, wording = line.pop("id"), line.pop("wording", 0)
    if isinstance(key, bool) or not isinstance(key, str | int) or key == "":
        raise RecordedLineError(id_words(key))
    if type(wording) is not int or not 0 <= wording <= MAX_VARIANTS:
        raise RecordedLineError(f"`wording` is no whole number from 0 to {MAX_VARIANTS}; {WORDINGS}")
    return str(key), wording


def wording_key(question: str, wording: int) -> Hashable:
    """What one wording of a question is told by among others: `question` itself by the id alone."""
    return (question, wording) if wording else question


def named_variant(preposition: str, wording: int) -> str:
    """`` to variant 2``, for errors; nothing for `question` itself."""
    return f" {preposition} variant {wording}" if wording else ""
