"""Recorded responses and verdicts: each line names its question, which may be none of the golden set."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from evaltrack.errors import printable
from evaltrack.records.amount import first_of
from evaltrack.records.base import as_key
from evaltrack.records.finding_words import id_words

EXAMPLES = 3


def strangers_note(path: Path, what: str, ids: Sequence[str]) -> str:
    """``answers.jsonl: responses of no question in the golden set: 2 (`21`, `22`); …``; nothing where there are none.

    Args:
        path: The recording.
        what: What it holds, in the plural.
        ids: Those of other questions.
    """
    if not ids:
        return ""
    first = first_of([f"`{key[:60]}`" for key in ids[:EXAMPLES]], EXAMPLES, len(ids))
    those = f"{what} of no question in the golden set"
    return printable(f"{path}: {those}: {len(ids):,} ({first}); nothing was done with them")


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
    key = as_key(line.pop("id"))
    if not isinstance(key, str) or not key:
        raise RecordedLineError(id_words(key))
    return key
