"""A row as a journal keeps it: JSON with a checksum, checked when it is read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from zlib import crc32

from pydantic import ValidationError

from evaltrack.records import Question, Row

Line = tuple[str, str, int | None, bool, str, int]
"""What is kept of a row: id, digest, trial, whether it failed, its text, and a checksum of that."""


def line_of(row: Row) -> Line:
    """What is kept of a row: id, digest, trial, whether it failed, its text, and a checksum of that."""
    text = row.model_dump_json(exclude_defaults=True)
    failed = row.failure is not None
    return row.question.id, row.question.digest, row.trial, failed, text, crc32(text.encode())


def readable_line(found: Sequence[Any]) -> Line:
    """A line as it was kept, from columns that are read as bytes."""
    key, digest, trial, failed, text, checksum = found
    words = [each.decode(errors="replace") if isinstance(each, bytes) else str(each) for each in (key, digest, text)]
    return words[0], words[1], trial, bool(failed), words[2], checksum


def row_in(text: object, checksum: object, question: Question, trial: int) -> Row | None:
    """The row of a question; None where its text is not as it was written, or of another version."""
    row = any_row_in(text, checksum)
    if row is None:
        return None
    asked = row.question
    return row if (asked.id, asked.digest, row.trial) == (question.id, question.digest, trial) else None


def any_row_in(text: object, checksum: object) -> Row | None:
    """The row in a text; None where that is not as it was written, or of another version."""
    if not isinstance(text, bytes) or crc32(text) != checksum:
        return None
    try:
        return Row.model_validate_json(text)
    except ValidationError:
        return None
