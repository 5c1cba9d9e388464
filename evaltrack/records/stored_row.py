"""Defines a row of a run's Parquet table (flat columns, long texts cut), and converts records to it and back."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cache
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from evaltrack.errors import TrackingError
from evaltrack.records.base import Record
from evaltrack.records.question import EXPECTATIONS, Difficulty, Question, Turn, title_key
from evaltrack.records.response import Response, Source, Usage
from evaltrack.records.row import FailureKind, Row
from evaltrack.records.verdict import ANSWER_GRADES, Mode, Verdict

SOURCE_TEXT_LIMIT = 4000
"""Characters stored of the text of each of the first k sources. `text_digest` covers all of every text."""

TEXT_LIMIT = 200_000
"""Characters stored of an answer. The number of characters left out is written after them."""

LARGEST_COUNT = 1 << 60
"""The largest count, and the largest time in seconds."""

USAGE_PARTS = tuple(Usage.model_fields)

AnyRecord = TypeVar("AnyRecord", bound=Record)
Amount = Annotated[int, Field(ge=0, le=LARGEST_COUNT)]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSource:
    """One returned source.

    `text` is None beyond the first k; `text_digest` covers all of the text. `finds` names the expected passages that it
    holds and no higher source does; a repeated source has those of its first occurrence.
    """

    chunk_id: str | None = None
    title: str | None = None
    url: str | None = None
    score: Annotated[float, Field(allow_inf_nan=False)] | None = None
    text: str | None = None
    text_digest: str | None = None
    finds: tuple[str, ...] = ()


RowOutcome = Literal["pass", "fail", "error", "not measured"]

JUDGE_ERROR: FailureKind = "judge_error"
"""The beginning of `error` in a row whose target answered and whose judge failed."""

NAMELESS = "\0"
"""The beginning of the key of a source without an id or title to compare. Such a key only says its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRow:
    """One question of a run, or one trial of it.

    `scores` holds the measured values by the names of scores; in a table each score is a column. A column that was not
    read has its default. `expected` is None if no sources are expected, and empty if the target should decline. It
    names passages if `by_passage`, titles if `by_title`, else chunk ids. `unmeasured` and `score_reasoning` hold texts
    by the names of scores. `trials` counts the measured trials that the row merges, `passes` those that passed.
    `history` holds the turns before the question. `trace_id` and `root_span_id` are from the target's own trace in
    MLflow.
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
    scores: Mapping[str, float] = field(default_factory=dict)
    unmeasured: Mapping[str, str] = field(default_factory=dict)
    score_reasoning: Mapping[str, str] = field(default_factory=dict)
    expected: tuple[str, ...] | None = None
    by_title: bool = False
    by_passage: bool | None = None
    sources: tuple[StoredSource, ...] | None = None
    abstained: bool | None = None
    model: str | None = None
    k: Amount = 0
    duplicates: Amount = 0
    tool_calls: tuple[str, ...] | None = None
    prompt_tokens: Amount | None = None
    completion_tokens: Amount | None = None
    cached_tokens: Amount | None = None
    reasoning_tokens: Amount | None = None
    tokens_known: Literal["reported", "counted", "estimated"] | None = None
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
    own: tuple[str, ...] = ()

    @classmethod
    def of(cls, columns: Mapping[str, Any], own: tuple[str, ...] = ()) -> StoredRow:
        """Return the row of these columns. Columns that are no fields are scores. Null and missing ones have defaults.

        Raises:
            ValidationError: evaltrack does not write such a value.
        """
        held = {name: value for name, value in columns.items() if value is not None}
        scores = {name: value for name, value in held.items() if name not in FIELDS}
        return adapter().validate_python({**held, "scores": scores, "own": own}, extra="ignore")

    @property
    def outcome(self) -> RowOutcome:
        """The outcome of the question."""
        return outcome_of(self.error, passed=self.passed)

    @property
    def declined(self) -> bool:
        """True if the target itself declined, by its flag or an empty list of sources."""
        return bool(self.abstained) or self.sources == ()

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

    def _key(self, source: StoredSource, place: int) -> str:
        name = self._compared_name(source)
        if name is None and self.by_passage and source.title and source.text_digest:
            return f"{source.title}{NAMELESS}{source.text_digest}"  # chunks of one page have one title
        return (title_key(name) if name and self.by_title else name) or f"{NAMELESS}{place}"

    def _compared_name(self, source: StoredSource) -> str | None:
        return source.title if self.by_title else source.chunk_id

    def name_of(self, source: StoredSource) -> str:
        """Return a source's name for people."""
        return self._compared_name(source) or source.title or "?"

    def without_texts(self) -> StoredRow:
        """Return the row without the texts of its sources, which are its largest part."""
        sources = self.sources
        return self if sources is None else replace(self, sources=tuple(replace(each, text=None) for each in sources))


def outcome_of(error: str | None, *, passed: bool | None) -> RowOutcome:
    """Return the outcome of a question."""
    if error:
        return "error"
    return "not measured" if passed is None else "pass" if passed else "fail"


FIELDS = frozenset(each.name for each in fields(StoredRow)) - {"scores", "own"}


@cache
def adapter() -> TypeAdapter[StoredRow]:
    """Return the validator and serializer of rows."""
    return TypeAdapter(StoredRow)


def text_digest(text: str) -> str:
    """Return a digest of the text, 16 hex digits of SHA-256."""
    return hashlib.sha256(text.encode()).hexdigest()[:16]


QUESTION_FIELDS = ("id", "question", "expected_answer", "domain", "difficulty", "category")
"""The fields of a question that a table holds unchanged."""


def stored_row(row: Row, k: int, own: tuple[str, ...] = ()) -> StoredRow:
    """Return the row as its table holds it. The first k sources are scored; `own` names the user's own scores."""
    question, response, failure, reasoned = row.question, row.response, row.failure, row.reasoned
    expected, trace = row.expected, row.trace
    by_passage = question.expected_passages is not None and expected == question.expected
    return StoredRow(
        **_parts(question, *QUESTION_FIELDS, "digest"),
        **_parts(row, "passed", "duplicates", "seconds", "started_at", "position", "trial"),
        **_parts(response, "abstained", "model"),
        **_parts(response.usage if response else None, *USAGE_PARTS),
        answer=_cut(response.answer) if response else None,
        error=str(failure) if failure else None,
        scores=dict(row.scores),
        unmeasured=dict(row.unmeasured),
        score_reasoning={name: verdict.reasoning for name, verdict in row.score_verdicts.items()},
        expected=expected,
        by_title=question.by_title and not by_passage,
        by_passage=by_passage,
        sources=_stored_sources(row, k),
        k=k,
        tool_calls=tuple(call.name for call in response.tool_calls) if response else None,
        tokens_known=getattr(row.tokens, "known", None),
        **(reasoned.model_dump() if reasoned else {}),
        verdicts=row.verdicts,
        trials=getattr(row.tally, "measured", None),
        passes=getattr(row.tally, "passed", None),
        history=question.history,
        traceback=getattr(failure, "traceback", None),
        trace_id=getattr(trace, "trace_id", None),
        root_span_id=getattr(trace, "span_id", None),
        own=own,
    )


def _cut(answer: str | None) -> str | None:
    left_out = len(answer or "") - TEXT_LIMIT
    return f"{answer[:TEXT_LIMIT]} [... characters left out: {left_out}]" if answer and left_out > 0 else answer


def _parts(record: object, *names: str) -> dict[str, Any]:
    return {name: getattr(record, name, None) for name in names}


def _stored_sources(row: Row, k: int) -> tuple[StoredSource, ...] | None:
    sources = row.response.sources if row.response else None
    if sources is None:
        return None
    return tuple(
        StoredSource(
            **_parts(source, "chunk_id", "title", "url", "score"),
            text=(source.text[:SOURCE_TEXT_LIMIT] if source.text and place < k else None) or None,
            text_digest=text_digest(source.text) if source.text else None,
            finds=finds,
        )
        for place, (source, finds) in enumerate(zip(sources, row.finds or ((),) * len(sources), strict=True))
    )


PRINTS = ("answer_print", "sources_print", "texts_print", "verdict_print")
"""Columns with digests to compare rows: of the answer, the sources in order, their texts, and the verdicts."""

NUM_EXPECTED = "num_expected"
"""The column with the number of expected sources, by their keys; null if there is no expectation."""


def compared_columns(row: StoredRow) -> dict[str, int | None]:
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
    return {**prints, NUM_EXPECTED: None if row.expected is None else len(set(row.expected_keys))}


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


def question_of(row: StoredRow) -> Question:
    """Return the question as a judge needs it. The table holds no notes, metadata and expected tools.

    Raises:
        TrackingError: evaltrack did not write the row.
    """
    expected: dict[str, Any] = {}
    if row.expected is not None:
        keys: Iterable[Any] = [{"any_of": [each]} for each in row.expected] if row.by_passage else row.expected
        expected = {row.expected_field: keys}
    return _record(Question, {**_parts(row, *QUESTION_FIELDS), "history": row.history, **expected})


def response_of(row: StoredRow) -> Response:
    """Return the response as far as the table holds it: texts of the first k sources, up to the table's limit.

    Raises:
        TrackingError: evaltrack did not write the row.
    """
    found = None if row.sources is None else [_parts(each, *Source.model_fields) for each in row.sources]
    return _record(Response, {"answer": row.answer, "sources": found, "abstained": bool(row.abstained)})
