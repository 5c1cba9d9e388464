"""The fields of the objects that a row holds lists of: sources, verdicts, turns."""

from __future__ import annotations

import hashlib
from typing import get_args

from evaltrack.records import Role, Source, Usage
from evaltrack.records.verdict import ANSWER_GRADES
from evaltrack.rows.column import LARGEST, Attribute, Column

SOURCE_TEXT_LIMIT = 4000
"""Characters of the text of each of the first k sources; `text_digest` covers all of it, for every source."""

TEXT_LIMIT = 200_000
"""Characters kept of an answer; behind them stands how many are left out."""

USAGE_PARTS = tuple(Usage.model_fields)


def text_digest(text: str) -> str:
    """What tells one text from another."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _source_text(source: Source, limit: int) -> str | None:
    return source.text[:limit] or None if source.text else None


SOURCE_COLUMNS = (
    *(Column(name, "text", Attribute(name)) for name in ("chunk_id", "title", "url")),
    Column("score", "number", Attribute("score"), bounds=(-LARGEST, LARGEST)),
    Column("text", "text", _source_text),
    Column("text_digest", "text", lambda source, _: text_digest(source.text) if source.text else None),
    Column("finds", "texts", lambda *_: None),  # of the row, which knows what is expected
)

VERDICT_COLUMNS = (
    Column("judge", "text", Attribute("judge")),
    Column("reasoning", "text", Attribute("reasoning")),
    *(Column(name, "number", Attribute(name), bounds=(0, 1)) for name in ANSWER_GRADES),
    Column("declined", "flag", Attribute("declined")),
    Column("observed", "text", lambda verdict, _: verdict.observed.model_dump_json() if verdict.observed else None),
    Column("cached", "flag", Attribute("cached")),
    *(Column(name, "integer", Attribute(f"usage.{name}")) for name in USAGE_PARTS),
)

TURN_COLUMNS = (
    Column("role", "text", Attribute("role"), choices=get_args(Role)),
    Column("content", "text", Attribute("content")),
)
