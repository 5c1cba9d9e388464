"""The nouns: what flows from a golden line to a report.

`Question` -> (`Target`) -> `Response` -> scores -> `Row`. All records are immutable, refuse unknown fields, and hold
no NaN and no infinity: a score without a value is a reason in `Row.unmeasured`, never a number.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Awaitable, Mapping
from math import isfinite
from typing import Annotated, Any, Literal, Protocol

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, model_validator

METRICS_VERSION = 1
"""Raised by one whenever a definition of SPEC 3 to 6 changes; two runs compare only within one version."""

Difficulty = Literal["easy", "medium", "hard"]


class Record(BaseModel):
    """Base of all records: frozen, closed, finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def _key(value: object) -> object:
    """Ids may be written as numbers; they are compared as strings: ``5`` and ``"5"`` are one chunk."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _storable(value: object) -> object:
    """Text that every database and UTF-8 can hold: no NUL, no half of a surrogate pair."""
    if isinstance(value, str):
        if "\0" in value:
            raise ValueError("holds a NUL character")
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise ValueError("holds half of a surrogate pair, which is no text") from None
    return value


def _without_nul(value: object) -> object:
    """A target's text, often from a PDF: a NUL is replaced, as it would be lost on the way to a database."""
    return value.replace("\0", "\N{REPLACEMENT CHARACTER}") if isinstance(value, str) and "\0" in value else value


def _finite(value: object) -> object:
    """JSON has no infinity, but ``1e999`` is read as one."""
    if isinstance(value, float) and not isfinite(value):
        raise ValueError("holds a number that is not finite")
    if isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            _finite(item)
    return value


Text = Annotated[str, BeforeValidator(_storable)]
ForeignText = Annotated[str, BeforeValidator(_storable), BeforeValidator(_without_nul)]
Key = Annotated[str, StringConstraints(min_length=1), BeforeValidator(_key), BeforeValidator(_storable)]
FreeObject = Annotated[Mapping[str, Any], BeforeValidator(_finite)]
Count = Annotated[int, Field(ge=0, lt=1 << 63)]


class Question(Record):
    """One golden line.

    `expected_chunks` (ids) and `expected_sources` (titles) say what the target should retrieve; where both are given
    the chunks decide. An empty list makes the question a *negative*; neither field makes it judged only.
    """

    id: Key
    question: Annotated[str, StringConstraints(min_length=1, pattern=r"\S"), BeforeValidator(_storable)]
    expected_chunks: tuple[Key, ...] | None = None
    expected_sources: tuple[Key, ...] | None = None
    expected_answer: Text | None = None
    difficulty: Difficulty | None = None
    category: Text | None = None
    notes: Text | None = None
    domain: Key
    expected_tools: tuple[Key, ...] = ()
    metadata: FreeObject = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_kind(self) -> Question:
        if self.expected_chunks and self.expected_sources is not None and not self.expected_sources:
            raise ValueError("`expected_chunks` names chunks but `expected_sources` is empty; remove one of them")
        if self.expected_sources and self.expected_chunks is not None and not self.expected_chunks:
            raise ValueError("`expected_sources` names titles but `expected_chunks` is empty; remove one of them")
        return self

    @property
    def by_title(self) -> bool:
        """Whether relevance is decided by source titles instead of chunk ids."""
        return self.expected_chunks is None

    @property
    def expected(self) -> tuple[str, ...] | None:
        """What should be retrieved: chunk ids or titles; None where the question expects nothing of retrieval."""
        return self.expected_sources if self.expected_chunks is None else self.expected_chunks

    @property
    def negative(self) -> bool:
        """Whether the target should say that it does not know."""
        return self.expected is not None and not self.expected

    @property
    def digest(self) -> str:
        """SHA-256 (16 hex digits) of what is evaluated: question and expectations, not notes or labels."""
        evaluated = (
            self.question,
            self.expected_chunks,
            self.expected_sources,
            self.expected_answer,
            self.expected_tools,
        )
        text = json.dumps(evaluated, ensure_ascii=False, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class Source(Record):
    """One retrieved thing, at the rank of its place in `Response.sources`. It has a `chunk_id`, a `title` or both."""

    chunk_id: Key | None = None
    title: ForeignText | None = None
    url: ForeignText | None = None
    text: ForeignText | None = None
    score: float | None = None

    @model_validator(mode="after")
    def _named(self) -> Source:
        if self.chunk_id is None and self.title is None:
            raise ValueError("a source needs a `chunk_id` or a `title`")
        return self


class ToolCall(Record):
    """One tool that the target called."""

    name: Key
    arguments: FreeObject = Field(default_factory=dict)


class Usage(Record):
    """Tokens the target used for one question, over all of its calls, as it reports them."""

    prompt_tokens: Count
    completion_tokens: Count

    @property
    def total_tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        """Two usages together."""
        return Usage(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
        )


class Response(Record):
    """What a target gave for one question.

    `sources` is ranked, best first. An empty tuple means "looked and found nothing" and is measured; None means that
    the target does not retrieve, so that retrieval is not measured. `abstained` flags "I do not know".
    """

    answer: ForeignText | None = None
    sources: tuple[Source, ...] | None = None
    abstained: bool = False
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None

    @property
    def declined(self) -> bool:
        """Whether the target said that it does not know: it flagged so, or looked and returned no source."""
        return self.abstained or (self.sources is not None and not self.sources)


Unit = Annotated[float, Field(ge=0, le=1)]
"""A judge's number, in [0, 1]."""


class Verdict(Record):
    """What one judge said of one answer.

    On an answerable question it holds the four numbers; on a negative `declined` alone: whether the answer says that
    it does not know. `usage` is what the judge used for it, all calls together; `cached`: nothing was paid this time.
    """

    judge: Key
    reasoning: ForeignText
    accuracy: Unit | None = None
    completeness: Unit | None = None
    relevance: Unit | None = None
    overall_score: Unit | None = None
    declined: bool | None = None
    usage: Usage | None = None
    cached: bool = False


FailureKind = Literal["target_error", "target_timeout", "target_invalid", "judge_error"]


class Failure(Record):
    """Why a question could not be measured: a record in its row, never a number."""

    kind: FailureKind
    message: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.message}"


class Tokens(Record):
    """How many tokens the target used for one question, and how that is known.

    `reported` by the target; or `counted` by tiktoken over question, the first k sources' text and answer; or
    `estimated`, counted so with a stand-in encoding because the model's is not known.
    """

    count: int = Field(ge=0)
    known: Literal["reported", "counted", "estimated"]


class Row(Record):
    """Everything about one question in one run.

    `scores` holds measured values only; each score without a value stands in `unmeasured` with its reason. `passed` is
    None where the question could not be measured. A row whose target answered and whose judge failed has a `response`,
    its retrieval scores, and a `failure`. `started_at` is seconds since the epoch, `seconds` the target's time.
    """

    position: int = Field(ge=0)
    question: Question
    response: Response | None = None
    verdicts: tuple[Verdict, ...] = ()
    failure: Failure | None = None
    scores: Mapping[str, float] = Field(default_factory=dict)
    unmeasured: Mapping[str, str] = Field(default_factory=dict)
    duplicates: int = Field(default=0, ge=0)
    passed: bool | None = None
    tokens: Tokens | None = None
    started_at: float
    seconds: float = Field(ge=0)


class Signature(Record):
    """What must agree before two runs may be compared (the target may differ: it is what is compared)."""

    golden: str
    golden_digest: str
    k: int
    metrics_version: int = METRICS_VERSION
    target: str
    judge: str = "none"
    judge_prompt: str = ""
    weights: str = ""
    pass_threshold: float = 0.75


class Weights(Record):
    """The exponents of the combined score (seed 001)."""

    alpha: float = Field(default=2.0, ge=0)
    beta: float = Field(default=0.5, ge=0)
    gamma: float = Field(default=1.5, ge=0)


class Judge(Protocol):
    """An opinion on answers: an async callable from a question and its response to a `Verdict`.

    `name` tells it apart in a panel; `digest` identifies its prompt ("" where it has none). Whatever it raises becomes
    a `judge_error` in the question's row.
    """

    name: str
    digest: str

    def __call__(self, question: Question, response: Response, /) -> Awaitable[Verdict]:
        """Judge the response."""
        ...


class Target(Protocol):
    """A system under test: an async callable from a question and k to a `Response`.

    It may return more than k sources (scores cut at k, causes may look further). Whatever it raises becomes a
    `Failure` in the question's row.
    """

    def __call__(self, question: Question, k: int, /) -> Awaitable[Response]:
        """Ask the question; k is how many sources will be scored."""
        ...
