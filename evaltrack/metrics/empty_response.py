"""Responses without content."""

from __future__ import annotations

from evaltrack.records import Response


def holds_nothing(response: Response) -> bool:
    """Whether there is no answer or a blank one, no sources, no tool calls, and no word that it does not know."""
    return not (response.declined or response.sources or response.tool_calls or (response.answer or "").strip())
