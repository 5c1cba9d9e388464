"""How many of the questions that got worse something concerns, in words. Pure."""

from __future__ import annotations

from evaltrack.records.amount import count


def share_words(number: int, total: int) -> str:
    """``3 of 9 questions``, ``all 9 questions``, ``both questions``, ``the only question``."""
    if number < total:
        return f"{number:,} of {count(total, 'question')}"
    return {1: "the only question", 2: "both questions"}.get(total, f"all {count(total, 'question')}")
