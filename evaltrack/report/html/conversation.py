"""What a page shows of the turns before a question."""

from __future__ import annotations

from typing import Any

from evaltrack.report.html.text import shown
from evaltrack.rows.stored_row import StoredRow

LAST_TURNS = 20
"""Turns before a question that a page shows, the last ones."""

TURN_LIMIT = 2000
"""Characters of one turn at most; a page of many questions shows fewer."""


def turns_before(row: StoredRow, limit: int) -> dict[str, Any]:
    """The last turns before the question, each as role and text, and how many stood before these."""
    if not row.history:  # as in most rows
        return {}
    last = row.history[-LAST_TURNS:]
    room = max(100, min(TURN_LIMIT, limit // max(1, len(last))))
    return {
        "turns": [[turn.role, shown(turn.content, room)] for turn in last],
        "turns_left_out": len(row.history) - len(last),
    }
