"""Turns the error of a row into plain words: ``the target took too long: no response within 60 s``."""

from __future__ import annotations

FAILURES: dict[str, str] = {
    "target_error": "the target failed",
    "target_timeout": "the target took too long",
    "target_invalid": "the response of the target cannot be read",
    "judge_error": "the judge failed",
}
"""The meaning of each kind of failure."""


def failure_words(error: str) -> str:
    """Return the error of a row for people: ``the target took too long: no response within 60 s``."""
    kind, _, message = error.partition(": ")
    return f"{FAILURES[kind]}: {message}" if kind in FAILURES else error


def failure_message(error: str) -> str:
    """Return the error of a row without its kind: ``no response within 60 s``."""
    kind, _, message = error.partition(": ")
    return message if kind in FAILURES else error
