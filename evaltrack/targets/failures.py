"""Defines errors of targets, and reads message, traceback, tokens and trace of any error without raising another."""

from __future__ import annotations

import json
import signal
import traceback
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from evaltrack.records import Usage
from evaltrack.records.response import TracePlace

READ_LIMIT = 100_000
"""Maximum characters that are read of an error's message, and of the end of its traceback."""

OWN_FOLDER = str(Path(__file__).parents[1])
MAX_ERROR = 2000
"""Maximum characters of a returned or recorded error."""

FRAMES = 50
"""Last calls that a traceback shows for each error in its chain."""


class InvalidResponseError(ValueError):
    """The return value of a target cannot be read as a `Response`; `trace` is the trace of the call."""

    def __init__(self, text: str, trace: TracePlace | None = None) -> None:
        super().__init__(text)
        self.evaltrack_trace = trace


class NotRecordedError(LookupError):
    """No response was recorded for a question."""


class FailedElsewhereError(RuntimeError):
    """A target returned an error, or an error was recorded, instead of a response."""


class RaisedElsewhereError(Exception):
    """An error of a user's function in another process; the message begins with the type, as `described` does."""

    def __init__(
        self, text: str, usage: Usage | None = None, traceback_text: str | None = None, trace: TracePlace | None = None
    ) -> None:
        super().__init__(text)
        self.usage = usage
        self.evaltrack_traceback, self.evaltrack_trace = traceback_text, trace


def refuse_error(value: object) -> None:
    """Refuse a response with an `error` that is not empty, even if it has other content.

    Raises:
        FailedElsewhereError: it has an error.
    """
    error = value.get("error") if isinstance(value, Mapping) else _attribute(value, "error")
    if error and str(error).strip():
        raise FailedElsewhereError(f"the target returned an error: {error_text(error)}")


def error_text(error: object) -> str:
    """Return a returned or recorded error as text of limited length."""
    return (error if isinstance(error, str) else json.dumps(error, ensure_ascii=False, default=str))[:MAX_ERROR]


def described(error: BaseException) -> str:
    """Return the type of an error and its message; of an error of evaltrack only its message, which says all."""
    message = _message(error)
    return message if type(error).__module__.startswith("evaltrack.") else f"{type(error).__name__}: {message}"


def usage_of(outcome: object) -> Usage | None:
    """Return the usage of a failed or late call; None if it reports none."""
    usage = _attribute(outcome, "usage")
    return usage if isinstance(usage, Usage) else None


def note_origin(error: BaseException, trace: TracePlace | None = None) -> None:
    """Store the traceback and the trace of an error of a user's function as its attributes."""
    with suppress(Exception):  # a class of the user may refuse attributes
        error.evaltrack_traceback = _traceback(error)  # type: ignore[attr-defined]
        error.evaltrack_trace = trace  # type: ignore[attr-defined]


def traceback_of(outcome: object) -> str | None:
    """Return the traceback that an error holds."""
    text = _attribute(outcome, "evaltrack_traceback")
    return text if isinstance(text, str) else None


def trace_of(outcome: object) -> TracePlace | None:
    """Return the trace that an error was raised in."""
    trace = _attribute(outcome, "evaltrack_trace")
    return trace if isinstance(trace, TracePlace) else None


def _attribute(outcome: object, name: str) -> object:
    try:
        return getattr(outcome, name, None)
    except Exception:
        return None


def _traceback(error: BaseException) -> str | None:
    """Return the traceback without evaltrack's own calls; None if no call is left."""
    report = traceback.TracebackException.from_exception(error, limit=-FRAMES, compact=True)
    report.stack = traceback.StackSummary.from_list(
        [frame for frame in report.stack if not frame.filename.startswith(OWN_FOLDER)]
    )
    return "".join(report.format())[-READ_LIMIT:] if report.stack else None


def _message(error: BaseException) -> str:
    try:
        return str(error)[:READ_LIMIT]
    except Exception:
        return "(its message cannot be read)"


def ending(code: int) -> str:
    """Return the way a process ended: ``ended with exit code 3``, ``was ended by SIGSEGV``."""
    if code >= 0:
        return f"ended with exit code {code}"
    try:
        return f"was ended by {signal.Signals(-code).name}"
    except ValueError:
        return f"was ended by signal {-code}"
