"""How many of the questions that got worse something concerns, and a p-value, in words. Pure."""

from __future__ import annotations

from evaltrack.records.amount import count


def share_words(number: int, total: int) -> str:
    """``3 of 9 questions``, ``all 9 questions``, ``both questions``, ``the only question``."""
    if number < total:
        return f"{number:,} of {count(total, 'question')}"
    return {1: "the only question", 2: "both questions"}.get(total, f"all {count(total, 'question')}")


def all_words(number: int) -> str:
    """``all 5``, of two ``both``."""
    return "both" if number == 2 else f"all {number:,}"


def p_words(p_value: float) -> str:
    """``p = 0.62``, or ``p < 0.001``."""
    if p_value < 0.001:
        return "p < 0.001"
    return f"p = {p_value:.2f}" if p_value >= 0.0095 else f"p = {p_value:.3f}"
