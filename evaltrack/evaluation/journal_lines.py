"""A row as a journal keeps it: JSON with a checksum, checked when it is read."""

from __future__ import annotations

from zlib import crc32

from pydantic import ValidationError

from evaltrack.records import Question, Row


def line_of(row: Row) -> tuple[str, str, int | None, bool, str, int]:
    """What is kept of a row: id, digest, trial, whether it failed, its text, and a checksum of that."""
    text = row.model_dump_json(exclude_defaults=True)
    failed = row.failure is not None
    return row.question.id, row.question.digest, row.trial, failed, text, crc32(text.encode())


def row_in(text: object, checksum: object, question: Question, trial: int) -> Row | None:
    """The row of a question; None where its text is not as it was written, or of another version."""
    if not isinstance(text, bytes) or crc32(text) != checksum:
        return None
    try:
        row = Row.model_validate_json(text)
    except ValidationError:
        return None
    asked = row.question
    return row if (asked.id, asked.digest, row.trial) == (question.id, question.digest, trial) else None
