"""Turns the error of a row into plain words: ``the target took too long: no response within 60 s``."""

from __future__ import annotations

FAILURES: dict[str, str] = {
    "target_error": "the target failed",
    "target_timeout": "the target took too long",
    "target_invalid": "the response of the target cannot be read",
    "judge_error": "the judge failed",
}
"""The meaning of each kind of failure."""


OWN_ERRORS = (
    "CommandTargetError",
    "EmptyIndexError",
    "FailedElsewhereError",
    "HttpTargetError",
    "InvalidResponseError",
    "NotJudgedError",
    "NotRecordedError",
    "ProcessEndedError",
    "UnreadableVerdictError",
)
"""Exception classes of evaltrack whose messages need no class name."""


def failure_words(error: str) -> str:
    """Return the error of a row for people: ``the target took too long: no response within 60 s``."""
    kind, colon, _ = error.partition(": ")
    if not colon or kind not in FAILURES:
        return error
    is_told = error.startswith(f"{kind}: NotRecordedError: ")  # no target was called
    return failure_message(error) if is_told else f"{FAILURES[kind]}: {failure_message(error)}"


def failure_message(error: str) -> str:
    """Return the error of a row without its kind and without an evaltrack class: ``no response within 60 s``."""
    kind, colon, message = error.partition(": ")
    if not colon or kind not in FAILURES:
        return error
    name, named, rest = message.partition(": ")
    return rest if named and name in OWN_ERRORS else message
