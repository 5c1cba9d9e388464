"""Defines the row of one question in a run: journal, Parquet table and comparisons hold this record, long texts cut."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, ValidationError

from evaltrack.errors import TrackingError
from evaltrack.records.base import Record
from evaltrack.records.question import EXPECTATIONS, Difficulty, Question, Turn, title_key
from evaltrack.records.response import Response, Returned, Source, TracePlace, Usage
from evaltrack.records.verdict import ANSWER_GRADES, Mode, Verdict

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


SOURCE_TEXT_LIMIT = 4000
"""Characters stored of the text of each of the first k sources. `text_digest` covers all of every text."""

TEXT_LIMIT = 200_000
"""Characters stored of an answer. The number of characters left out is written after them."""

LARGEST_COUNT = 1 << 60
"""The largest count, and the largest time in seconds."""

AnyRecord = TypeVar("AnyRecord", bound=Record)
Amount = Annotated[int, Field(ge=0, le=LARGEST_COUNT)]


class RowSource(Record):
    """One returned source.

    `text` is None beyond the first k; `text_digest` covers all of the text. `finds` names the expected passages that it
    holds and no higher source does; a repeated source has those of its first occurrence.
    """

    chunk_id: str | None = None
    title: str | None = None
    url: str | None = None
    score: float | None = None
    text: str | None = None
    text_digest: str | None = None
    finds: tuple[str, ...] = ()


RowOutcome = Literal["pass", "fail", "error", "not measured"]

JUDGE_ERROR: FailureKind = "judge_error"
"""The beginning of `error` in a row whose target answered and whose judge failed."""

NAMELESS = "\0"
"""The beginning of the key of a source without an id or title to compare. Such a key only says its place."""


class Row(Returned):
    """One question of a run, or one trial of it: response, verdicts and scores, or the failure.

    It is a line of the journal, a row of the Parquet table, and what is compared. A column that was not read has its
    default.

    `scores` holds the measured values by the names of scores; in a table each score is a column. `unmeasured` holds a
    reason for each score without a value. `passed` is None if the question could not be measured. `error` holds kind
    and message of a failure; if the judge failed, the row has an answer and its retrieval scores. `expected` is None
    if no sources are expected, and empty if the target should decline. It names passages if `by_passage`, titles if
    `by_title`, else chunk ids. `score_verdicts` holds the judges' verdicts for the user's own scores, by the name of
    the score. `judge_usage` is the usage of judges without a verdict; the tokens are those of the target, of a failed
    call too. `unread` names unknown fields of the response. `history` holds the turns before the question. `trace_id`
    and `root_span_id` are from the target's own trace in MLflow. `started_at` is in seconds since 1970; `seconds` is
    the target's time.

    If questions are asked several times, there is one row for each trial and one that merges them. The merged row has
    `trial` None; `trials` counts its measured trials, `passes` those that passed.
    """

    id: str
    question: str = ""
    answer: str | None = None
    expected_answer: str | None = None
    domain: str = ""
    difficulty: Difficulty | None = None
    category: str | None = None
    passed: bool | None = None
    error: str | None = None
    scores: Mapping[str, float] = Field(default_factory=dict)
    unmeasured: Mapping[str, str] = Field(default_factory=dict)
    score_verdicts: Mapping[str, Verdict] = Field(default_factory=dict)
    expected: tuple[str, ...] | None = None
    by_title: bool = False
    by_passage: bool | None = None
    sources: tuple[RowSource, ...] | None = None
    abstained: bool | None = None
    model: str | None = None
    k: Amount = 0
    duplicates: Amount = 0
    expected_tools: tuple[str, ...] = ()
    tool_calls: tuple[str, ...] | None = None
    unread: tuple[str, ...] = ()
    prompt_tokens: Amount | None = None
    completion_tokens: Amount | None = None
    cached_tokens: Amount | None = None
    reasoning_tokens: Amount | None = None
    tokens_known: Literal["reported", "counted", "estimated"] | None = None
    judge_usage: Usage | None = None
    tier: Annotated[int, Field(ge=0, le=3)] | None = None
    claimed_band: Annotated[int, Field(ge=1, le=4)] | None = None
    earned_band: Annotated[int, Field(ge=0, le=4)] | None = None
    coupling_gap: Amount | None = None
    penalty: Amount | None = None
    hard_fails: tuple[str, ...] = ()
    mode: Mode | None = None
    verdicts: tuple[Verdict, ...] = ()
    seconds: Annotated[float, Field(ge=0, le=LARGEST_COUNT)] = 0.0
    started_at: Annotated[float, Field(ge=-LARGEST_COUNT, le=LARGEST_COUNT)] = 0.0
    digest: str = ""
    position: Amount = 0
    trial: Amount | None = None
    trials: Amount | None = None
    passes: Amount | None = None
    history: tuple[Turn, ...] = ()
    traceback: str | None = None
    trace_id: str | None = None
    root_span_id: str | None = None

    @classmethod
    def of(cls, columns: Mapping[str, Any]) -> Row:
        """Return the row of these columns. Columns that are no fields are scores. Null and missing ones have defaults.

        Raises:
            ValidationError: evaltrack does not write such a value.
        """
        held = {name: value for name, value in columns.items() if value is not None}
        scores = {name: value for name, value in held.items() if name not in FIELDS}
        return cls.model_validate({**held, "scores": scores}, extra="ignore")

    @property
    def outcome(self) -> RowOutcome:
        """The outcome of the question."""
        return outcome_of(self.error, passed=self.passed)

    @property
    def usage(self) -> Usage | None:
        """The tokens that the target reported."""
        if self.prompt_tokens is None:
            return None
        return Usage.model_construct(**_parts(self, *Usage.model_fields))

    @property
    def judge_failed(self) -> bool:
        """True if the target answered and its judge failed."""
        return (self.error or "").startswith(JUDGE_ERROR)

    @property
    def target_failed(self) -> bool:
        """True if there is no answer to judge."""
        return bool(self.error) and not self.judge_failed

    @property
    def negative(self) -> bool:
        """True if the target should decline."""
        return self.expected == ()

    @property
    def scored_names(self) -> list[tuple[str | None, str | None]] | None:
        """The ids and titles of the first k sources, which are scored; None if the target does not retrieve."""
        return None if self.sources is None else [(each.chunk_id, each.title) for each in self.sources[: self.k]]

    @property
    def expected_field(self) -> str:
        """The field of a golden line that holds `expected`."""
        passages, chunks, titles = EXPECTATIONS
        return passages if self.by_passage else titles if self.by_title else chunks

    @property
    def expected_keys(self) -> tuple[str, ...]:
        """The expected keys, in the form in which sources are compared."""
        expected = self.expected or ()
        return tuple(map(title_key, expected)) if self.by_title else expected

    @property
    def source_keys(self) -> list[tuple[str, ...]]:
        """The keys by which each source is compared: the passages that it finds, else its chunk id or title.

        A source without any of these has a unique key.
        """
        return [each.finds or (self._key(each, place),) for place, each in enumerate(self.sources or ())]

    def _key(self, source: RowSource, place: int) -> str:
        name = self._compared_name(source)
        if name is None and self.by_passage and source.title and source.text_digest:
            return f"{source.title}{NAMELESS}{source.text_digest}"  # chunks of one page have one title
        return (title_key(name) if name and self.by_title else name) or f"{NAMELESS}{place}"

    def _compared_name(self, source: RowSource) -> str | None:
        return source.title if self.by_title else source.chunk_id

    def name_of(self, source: RowSource) -> str:
        """Return a source's name for people."""
        return self._compared_name(source) or source.title or "?"

    @property
    def num_expected(self) -> int | None:
        """The number of expected sources, by their keys; None if there is no expectation."""
        return None if self.expected is None else len(set(self.expected_keys))

    def without_texts(self) -> Row:
        """Return the row without the texts of its sources, which are its largest part."""
        if self.sources is None:
            return self
        sources = tuple(each.model_copy(update={"text": None}) for each in self.sources)
        return self.model_copy(update={"sources": sources})


def majority(passes: int, measured: int, trials: int) -> bool | None:
    """Return True if more than half of the measured trials passed; None if at most half of all were measured."""
    return 2 * passes > measured if 2 * measured > trials else None


def outcome_of(error: str | None, *, passed: bool | None) -> RowOutcome:
    """Return the outcome of a question."""
    if error:
        return "error"
    return "not measured" if passed is None else "pass" if passed else "fail"


FIELDS = frozenset(Row.model_fields) - {"scores"}


def text_digest(text: str) -> str:
    """Return a digest of the text, 16 hex digits of SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


LABELS = ("domain", "difficulty", "category")
"""The fields of a question that its digest leaves out."""

QUESTION_FIELDS = ("id", "question", "expected_answer", *LABELS)
"""The fields of a question that a row holds unchanged."""


def row_of(question: Question, outcome: Response | Failure, k: int, finds: Finds | None = None, **fields: Any) -> Row:
    """Return the row of a response or of the target's failure, with more of its `fields`.

    The first k sources are scored. `finds` is None if no sources were compared with passages.
    """
    response = outcome if isinstance(outcome, Response) else None
    failure = outcome if isinstance(outcome, Failure) else None
    by_name = response is not None and finds is None and question.expected_names is not None
    by_passage = question.expected_passages is not None and not by_name
    return Row.model_construct(
        **_parts(question, *QUESTION_FIELDS, "digest", "history", "expected_tools"),
        **_parts(response, "abstained", "model"),
        **_parts(outcome.usage, *Usage.model_fields),
        answer=_cut(response.answer) if response else None,
        expected=question.expected_names if by_name else question.expected,
        by_title=question.by_title and not by_passage,
        by_passage=by_passage,
        sources=_row_sources(response.sources, k, finds) if response and response.sources is not None else None,
        k=k,
        tool_calls=tuple(call.name for call in response.tool_calls) if response else None,
        unread=response.unread if response else (),
        traceback=failure.traceback if failure else None,
        trace_id=outcome.trace.trace_id if outcome.trace else None,
        root_span_id=outcome.trace.span_id if outcome.trace else None,
        **{"error": str(failure) if failure else None} | fields,
    )


def _cut(answer: str | None) -> str | None:
    left_out = len(answer or "") - TEXT_LIMIT
    return f"{answer[:TEXT_LIMIT]} [... characters left out: {left_out}]" if answer and left_out > 0 else answer


def _parts(record: object, *names: str) -> dict[str, Any]:
    return {name: getattr(record, name, None) for name in names}


def _row_sources(sources: Sequence[Source], k: int, finds: Finds | None) -> tuple[RowSource, ...]:
    return tuple(
        RowSource.model_construct(
            **_parts(source, "chunk_id", "title", "url", "score"),
            text=(source.text[:SOURCE_TEXT_LIMIT] if source.text and place < k else None) or None,
            text_digest=text_digest(source.text) if source.text else None,
            finds=found,
        )
        for place, (source, found) in enumerate(zip(sources, finds or ((),) * len(sources), strict=True))
    )


PRINTS = ("answer_print", "sources_print", "texts_print", "verdict_print")
"""Columns with digests to compare rows: of the answer, the sources in order, their texts, and the verdicts."""

NUM_EXPECTED = "num_expected"
"""The column with `Row.num_expected`."""


def compared_columns(row: Row) -> dict[str, int | None]:
    """Return `PRINTS` and `NUM_EXPECTED`, by which a million rows are compared without reading them whole.

    Among a million different pairs, the odds that one looks equal are 1 in 10^10.
    """
    sources = row.sources
    parts = (
        (row.answer, row.abstained, row.tool_calls, row.error),
        sources and [(each.chunk_id, each.title) for each in sources],
        sources and [each.text_digest for each in sources],
        [[getattr(each, name) for name in JUDGED] for each in row.verdicts],
    )
    prints = {name: _print(part) for name, part in zip(PRINTS, parts, strict=True)}
    return {**prints, NUM_EXPECTED: row.num_expected}


JUDGED = ("reasoning", *ANSWER_GRADES, "declined", "observed")
"""The fields of a verdict that are compared."""


def _print(part: object) -> int:
    return int.from_bytes(hashlib.sha256(repr(part).encode()).digest()[:8], "big", signed=True)


def _record(kind: type[AnyRecord], fields: Mapping[str, Any]) -> AnyRecord:
    """Return the record with these fields of a row. Their types are valid, but anyone may write artifacts."""
    try:
        return kind.model_validate(fields)
    except ValidationError:
        what = f"a row of the run holds a {kind.__name__} that evaltrack did not write"
        raise TrackingError(f"{what}; evaluate again") from None


def question_of(row: Row) -> Question:
    """Return the question as a judge needs it. The table holds no notes, metadata and expected tools.

    Raises:
        TrackingError: evaltrack did not write the row.
    """
    expected: dict[str, Any] = {}
    if row.expected is not None:
        keys: Iterable[Any] = [{"any_of": [each]} for each in row.expected] if row.by_passage else row.expected
        expected = {row.expected_field: keys}
    return _record(Question, {**_parts(row, *QUESTION_FIELDS), "history": row.history, **expected})


def response_of(row: Row) -> Response:
    """Return the response as far as the table holds it: texts of the first k sources, up to the table's limit.

    Raises:
        TrackingError: evaltrack did not write the row.
    """
    found = None if row.sources is None else [_parts(each, *Source.model_fields) for each in row.sources]
    return _record(Response, {"answer": row.answer, "sources": found, "abstained": bool(row.abstained)})


def seconds_now() -> float:
    """Return the seconds since 1970, never negative: MLflow refuses earlier times, and a clock may be wrong."""
    return max(0.0, time.time())


def milliseconds_now() -> int:
    """Return the milliseconds since 1970, never negative."""
    return int(seconds_now() * 1000)
