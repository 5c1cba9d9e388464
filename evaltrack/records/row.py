"""Defines the row of one question in a run: response, verdicts and scores, or the failure; with counts of trials."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from evaltrack.records.base import Record
from evaltrack.records.question import Question
from evaltrack.records.response import Response, TracePlace, Usage
from evaltrack.records.verdict import Mode, Verdict

Finds = tuple[tuple[str, ...], ...]
"""For each source of a response, the keys of the expected passages that it holds and no higher source does.

A repeated source has the keys of its first occurrence.
"""

Traced = Literal["all", "failed", "off"]
"""The questions of a run that have traces."""
FailureKind = Literal["target_error", "target_timeout", "target_invalid", "judge_error"]

FAILURES: dict[str, str] = {
    "target_error": "the target failed",
    "target_timeout": "the target took too long",
    "target_invalid": "the response of the target cannot be read",
    "judge_error": "the judge failed",
}
"""The meaning of each kind of failure."""


class Failure(Record):
    """The reason why a question could not be measured. It is a record in the row, never a number.

    `usage` is the tokens used by the failed call. `traceback` is set if a user's function raised. `trace` holds the
    spans made until then.
    """

    kind: FailureKind
    message: str
    usage: Usage | None = None
    traceback: str | None = None
    trace: TracePlace | None = None

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


def failure_words(error: str) -> str:
    """Return the error of a row for people: ``the target took too long: no response within 60 s``."""
    kind, _, message = error.partition(": ")
    return f"{FAILURES[kind]}: {message}" if kind in FAILURES else error


def failure_message(error: str) -> str:
    """Return the error of a row without its kind: ``no response within 60 s``."""
    kind, _, message = error.partition(": ")
    return message if kind in FAILURES else error


class Tokens(Record):
    """The tokens that the target used for one question, and their origin.

    `reported` by the target; `counted` by tiktoken over question, the first k sources' text and answer; or `estimated`,
    counted with a stand-in encoding because the model's is not known.
    """

    count: int = Field(ge=0)
    known: Literal["reported", "counted", "estimated"]


class Reasoned(Record):
    """The parts of a reasoning score. For a panel they are from the judge with the widest gap."""

    tier: int = Field(ge=0, le=3)
    claimed_band: int | None = Field(default=None, ge=1, le=4)
    earned_band: int = Field(ge=0, le=4)
    coupling_gap: int | None = Field(default=None, ge=0)
    penalty: int = Field(ge=0)
    hard_fails: tuple[str, ...] = ()
    mode: Mode


class Tally(Record):
    """The counts of trials of one question: `measured` is the number measured, `passed` the number passed of these."""

    trials: int = Field(ge=1)
    measured: int = Field(ge=0)
    passed: int = Field(ge=0)

    @property
    def majority(self) -> bool | None:
        """True if more than half of the measured trials passed; None if at most half of all trials were measured."""
        return 2 * self.passed > self.measured if 2 * self.measured > self.trials else None


class Row(Record):
    """The results of one question in one run, or in one of its trials.

    If questions are asked several times, there is one row for each trial and one that merges them. The merged row has
    `trial` None, and its `tally` counts the trials.

    `scores` holds only measured values; `unmeasured` holds a reason for each score without a value. `passed` is None if
    the question could not be measured. A row whose target answered and whose judge failed has a `response`, its
    retrieval scores, and a `failure`. `score_verdicts` holds the judges' verdicts for the user's own scores, by the
    name of the score. `score_usage` is the usage of such judges without a verdict. `finds` is set if sources were
    compared with passages. `started_at` is in seconds since 1970; `seconds` is the target's time.
    """

    position: int = Field(ge=0)
    question: Question
    trial: int | None = Field(default=1, ge=1)
    tally: Tally | None = None
    response: Response | None = None
    verdicts: tuple[Verdict, ...] = ()
    score_verdicts: Mapping[str, Verdict] = Field(default_factory=dict)
    score_usage: Usage | None = None
    failure: Failure | None = None
    scores: Mapping[str, float] = Field(default_factory=dict)
    unmeasured: Mapping[str, str] = Field(default_factory=dict)
    duplicates: int = Field(default=0, ge=0)
    finds: Finds | None = None
    passed: bool | None = None
    tokens: Tokens | None = None
    reasoned: Reasoned | None = None
    started_at: float
    seconds: float = Field(ge=0)

    @property
    def expected(self) -> tuple[str, ...] | None:
        """The expected keys that its sources were compared with: of passages, chunk ids or titles."""
        by_name = self.finds is None and self.response is not None and self.question.expected_names is not None
        return self.question.expected_names if by_name else self.question.expected

    @property
    def trace(self) -> TracePlace | None:
        """The target's own trace of the question, if any."""
        holder = self.response or self.failure
        return holder.trace if holder else None


def seconds_now() -> float:
    """Return the seconds since 1970, never negative: MLflow refuses earlier times, and a clock may be wrong."""
    return max(0.0, time.time())


def milliseconds_now() -> int:
    """Return the milliseconds since 1970, never negative."""
    return int(seconds_now() * 1000)
