"""What recorded responses and recorded verdicts have in common: each line names its question."""

from __future__ import annotations

import re
from typing import Any

from evaltrack.records.finding_words import id_words

ID_NAME = re.compile(r"(?i)(?:^|[_-])id$|^q(?:uestion)?id$")
"""Names of a field that may hold the id of a question."""


class RecordedLineError(ValueError):
    """A line does not say which question it is of."""


def take_id(line: dict[str, Any], deed: str) -> str:
    """Take the question's id out of a line; `deed` is what was done with the question.

    Raises:
        RecordedLineError: it has no id.
    """
    if "id" not in line:
        near = next((name for name in line if ID_NAME.search(name)), "")
        meant = f"rename `{near}`" if near else f"name the question that was {deed}"
        raise RecordedLineError(f"`id` is missing; {meant}")
    key = line.pop("id")
    if isinstance(key, bool) or not isinstance(key, str | int) or key == "":
        raise RecordedLineError(id_words(key))
    return str(key)
