"""Defines errors of targets, and reads message, traceback, tokens and trace of any error without raising another."""

from __future__ import annotations

import json
import signal
import traceback
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Literal

from evaltrack.records import Record, Usage
from evaltrack.records.response import TracePlace

READ_LIMIT = 100_000
"""Maximum characters that are read of an error's message, and of the end of its traceback."""

OWN_FOLDER = str(Path(__file__).parents[1])
MAX_ERROR = 2000
"""Maximum characters of a returned or recorded error."""

FRAMES = 50
"""Last calls that a traceback shows for each error in its chain."""


class InvalidResponseError(ValueError):
    """The return value of a target cannot be read as a `Response`."""


class NotRecordedError(LookupError):
    """No response was recorded for a question."""


class FailedElsewhereError(RuntimeError):
    """A target returned an error, or an error was recorded, instead of a response."""


class RaisedElsewhereError(Exception):
    """An error of a user's function in another process."""


class ErrorFacts(Record):
    """The text of an error, with its type unless the text says all, and what it reports and where it was raised."""

    kind: Literal["invalid", "raised", "memory"] = "raised"
    text: str
    usage: Usage | None = None
    traceback: str | None = None
    trace: TracePlace | None = None

    def as_error(self) -> Exception:
        """Return an error with these facts."""
        error = (InvalidResponseError if self.kind == "invalid" else RaisedElsewhereError)(self.text)
        error.evaltrack_facts = self  # type: ignore[union-attr]
        return error


def refuse_error(value: object) -> None:
    """Refuse a response with an `error` that is not empty, even if it has other content.

    Raises:
        FailedElsewhereError: it has an error.
    """
    error = value.get("error") if isinstance(value, Mapping) else getattr(value, "error", None)
    if error and str(error).strip():
        raise FailedElsewhereError(f"the target returned an error: {error_text(error)}")


def error_text(error: object) -> str:
    """Return a returned or recorded error as text of limited length."""
    return (error if isinstance(error, str) else json.dumps(error, ensure_ascii=False, default=str))[:MAX_ERROR]


def facts_of(error: object) -> ErrorFacts:
    """Return the facts of an error, or the usage of a late response."""
    if isinstance(facts := getattr(error, "evaltrack_facts", None), ErrorFacts):
        return facts
    usage, name, text = getattr(error, "usage", None), type(error).__name__, _text(error)
    kind: Literal["invalid", "raised", "memory"] = "memory" if isinstance(error, MemoryError) else "raised"
    return ErrorFacts(
        kind="invalid" if isinstance(error, InvalidResponseError) else kind,
        text=text if type(error).__module__.startswith("evaltrack.") else f"{name}: {text}",
        usage=usage if isinstance(usage, Usage) else None,
    )


def note_origin(error: BaseException, trace: TracePlace | None = None) -> None:
    """Store the traceback and the trace of an error of a user's function in it."""
    facts = facts_of(error).model_copy(update={"traceback": _traceback(error), "trace": trace})
    with suppress(Exception):  # a class of the user may refuse attributes
        error.evaltrack_facts = facts  # type: ignore[attr-defined]


def _traceback(error: BaseException) -> str | None:
    """Return the traceback without evaltrack's own calls; None if no call is left."""
    report = traceback.TracebackException.from_exception(error, limit=-FRAMES, compact=True)
    report.stack = traceback.StackSummary.from_list(
        [frame for frame in report.stack if not frame.filename.startswith(OWN_FOLDER)]
    )
    return "".join(report.format())[-READ_LIMIT:] if report.stack else None


def _text(error: object) -> str:
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
