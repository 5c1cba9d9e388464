"""All readers of foreign data, by name."""

from __future__ import annotations

from scripts.fuzzing.reader import Reader
from scripts.fuzzing.replies import reply_readers
from scripts.fuzzing.tables import table_readers
from scripts.fuzzing.tags import tag_readers
from scripts.fuzzing.texts import text_readers


def readers() -> dict[str, Reader]:
    """All readers by name."""
    return text_readers() | reply_readers() | tag_readers() | table_readers()
