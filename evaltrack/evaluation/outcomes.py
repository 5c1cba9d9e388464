"""One call of a target or a judge, within its time: what came of it, or why nothing did, as a failure of its row."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeVar

from evaltrack.errors import EvaltrackError
from evaltrack.records import Failure, FailureKind, OwnValues, Response, Usage, Verdict
from evaltrack.records.response import TracePlace
from evaltrack.targets.failures import described, trace_of, traceback_of, usage_of
from evaltrack.targets.processes import InterruptedCallError
from evaltrack.targets.response_fields import InvalidResponseError

Outcome = TypeVar("Outcome", Response, Verdict, OwnValues)

MESSAGE_LIMIT = 2000
"""Characters kept of a failure's message."""

CHAIN_LIMIT = 100
"""Errors looked at for what was being waited for."""


@dataclass(frozen=True)
class Broken:
    """Why there is no response or verdict, in words that may still hold a secret."""

    kind: FailureKind
    message: str
    usage: Usage | None = None
    traceback: str | None = None
    trace: TracePlace | None = None


async def within(
    seconds: float | None, ask: Callable[[], Awaitable[Outcome]], who: Literal["target", "judge"]
) -> Outcome | Broken:
    """What was asked for, or why it did not come.

    Only an error of evaltrack itself, being stopped, and that the call must be made again go further.
    """
    outcome: Outcome | BaseException
    deadline = None if seconds is None else asyncio.timeout(seconds)
    try:
        if deadline is None:
            return await ask()
        async with deadline:
            outcome = await ask()
    except (EvaltrackError, InterruptedCallError):
        raise  # e.g. a key that the server refuses: no question could be answered
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise  # we are being stopped; otherwise it is the target's own
        outcome = error
    if deadline is not None and deadline.expired():  # also where it was swallowed: late is late
        kind: FailureKind = "judge_error" if who == "judge" else "target_timeout"
        return Broken(kind, f"no response within {seconds:g} s{_waited_for(outcome)}", usage_of(outcome))
    if not isinstance(outcome, BaseException):
        return outcome
    if isinstance(outcome, InvalidResponseError) and who == "target":
        problem = str(outcome)
        joint = " " if problem.startswith(("is ", "has ", "holds ")) else ": "
        return Broken("target_invalid", f"what the target returned{joint}{problem}", trace=trace_of(outcome))
    if who == "judge":
        return Broken("judge_error", described(outcome), usage_of(outcome))
    return Broken("target_error", described(outcome), usage_of(outcome), traceback_of(outcome), trace_of(outcome))


def _waited_for(outcome: object) -> str:
    """What was being waited for when the time was up, as the notes of what was broken off tell."""
    error = outcome if isinstance(outcome, BaseException) else None
    for _ in range(CHAIN_LIMIT):  # a user's chain of causes may be a ring
        if error is None:
            break
        if notes := getattr(error, "__notes__", ()):
            return f"; {notes[0]}"
        error = error.__cause__ or error.__context__
    return ""


def failure(kind: FailureKind, message: str, usage: Usage | None = None) -> Failure:
    """A failure whose message can be stored anywhere: bounded, and valid Unicode."""
    text = storable(message)
    bounded = text if len(text) <= MESSAGE_LIMIT else text[: MESSAGE_LIMIT - 1] + "…"
    return Failure(kind=kind, message=bounded, usage=usage)


def storable(text: str) -> str:
    """A text as valid Unicode without zero characters, which databases refuse."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")
