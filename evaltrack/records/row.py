"""Everything about one question, failures included."""

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
"""For each source of a response the keys of the expected passages that it holds and no source above it does.

A repeat of a source has those of its first occurrence.
"""

Traced = Literal["all", "failed", "off"]
"""Which questions of a run have a trace."""
FailureKind = Literal["target_error", "target_timeout", "target_invalid", "judge_error"]


class Failure(Record):
    """Why a question could not be measured: a record in its row, never a number.

    `usage` is what the failure cost, `traceback` where a user's function raised, `trace` the spans made until then.
    """

    kind: FailureKind
    message: str
    usage: Usage | None = None
    traceback: str | None = None
    trace: TracePlace | None = None

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


class Tokens(Record):
    """How many tokens the target used for one question, and how that is known.

    `reported` by the target; or `counted` by tiktoken over question, the first k sources' text and answer; or
    `estimated`, counted so with a stand-in encoding because the model's is not known.
    """

    count: int = Field(ge=0)
    known: Literal["reported", "counted", "estimated"]


class Reasoned(Record):
    """What led to the score of a piece of reasoning; of a panel, the judge who saw the widest gap."""

    tier: int = Field(ge=0, le=3)
    claimed_band: int | None = Field(default=None, ge=1, le=4)
    earned_band: int = Field(ge=0, le=4)
    coupling_gap: int | None = Field(default=None, ge=0)
    penalty: int = Field(ge=0)
    hard_fails: tuple[str, ...] = ()
    mode: Mode


class Tally(Record):
    """How the trials of one question went: `measured` could be, `passed` of them did, the rest of `trials` failed."""

    trials: int = Field(ge=1)
    measured: int = Field(ge=0)
    passed: int = Field(ge=0)

    @property
    def majority(self) -> bool | None:
        """Whether more than half of the measured trials passed; None where no more than half of all were measured."""
        return 2 * self.passed > self.measured if 2 * self.measured > self.trials else None


class Row(Record):
    """Everything about one question in one run, or in one trial of it.

    Where questions are asked several times there is one row a trial, and one that merges them: its `trial` is None and
    its `tally` counts them.

    `scores` holds measured values only; each score without a value stands in `unmeasured` with its reason. `passed` is
    None where the question could not be measured. A row whose target answered and whose judge failed has a `response`,
    its retrieval scores, and a `failure`. `score_verdicts` are those that scores of one's own asked for, by the names
    of the scores, and `score_usage` what they used where no verdict came of it. `finds` is there where sources were
    compared with passages.
    `started_at` is seconds since the epoch, `seconds` the target's time.
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
        """What its sources were compared with: keys of passages, chunk ids or titles."""
        by_name = self.finds is None and self.response is not None and self.question.expected_names is not None
        return self.question.expected_names if by_name else self.question.expected

    @property
    def trace(self) -> TracePlace | None:
        """The trace that the target itself made for the question."""
        holder = self.response or self.failure
        return holder.trace if holder else None


def seconds_now() -> float:
    """Seconds since 1970, never negative: MLflow refuses earlier times, and a clock may be wrong."""
    return max(0.0, time.time())


def milliseconds_now() -> int:
    """Milliseconds since 1970, never negative."""
    return int(seconds_now() * 1000)
