"""A row as it stands in a run's table, with its types: what comparisons, reports and traces read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from functools import partial
from typing import Any, Literal, TypeVar

from evaltrack.errors import TrackingError
from evaltrack.metrics.catalogue import SCORES
from evaltrack.records import Mode, Role, Row
from evaltrack.records.passage import title_key
from evaltrack.records.row import FailureKind
from evaltrack.rows.columns import COLUMNS, ROWS_VERSION, columns_with, flatten


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSource:
    """One source that was returned.

    `text` is None beyond the first k, `text_digest` is of all of it. `finds` names the expected passages that it holds
    and no source above it does; a repeat has those of its first occurrence.
    """

    chunk_id: str | None = None
    title: str | None = None
    url: str | None = None
    score: float | None = None
    text: str | None = None
    text_digest: str | None = None
    finds: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredVerdict:
    """What one judge said; `observed` is JSON of an `Observed`."""

    judge: str
    reasoning: str = ""
    overall_score: float | None = None
    accuracy: float | None = None
    completeness: float | None = None
    relevance: float | None = None
    declined: bool | None = None
    observed: str | None = None
    cached: bool = False
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTurn:
    """One message before the question."""

    role: Role = "user"
    content: str = ""


P = TypeVar("P", StoredSource, StoredVerdict, StoredTurn)

_NAMES = {kind: tuple(each.name for each in fields(kind)) for kind in (StoredSource, StoredVerdict, StoredTurn)}


def parts_of(kind: type[P], items: Iterable[Mapping[str, Any]] | None) -> tuple[P, ...]:
    """Objects of one kind, none where there is no list; fields of a newer version are left alone."""
    return tuple([_part(kind, item) for item in items or ()])


def _part(kind: type[P], item: Mapping[str, Any]) -> P:
    values = {name: item[name] for name in _NAMES[kind] if name in item}
    if "finds" in values:
        values["finds"] = tuple(values["finds"] or ())
    return kind(**values)


def object_of(item: StoredSource | StoredVerdict | StoredTurn) -> dict[str, Any]:
    """The object of a part as a table holds it."""
    values = {name: getattr(item, name) for name in _NAMES[type(item)]}
    return values | {"finds": list(values["finds"]) or None} if "finds" in values else values


CURE = "restore the file, or evaluate again"


class DamagedError(Exception):
    """The rows are not those of an evaluation; the message says what is wrong."""


class RowsError(TrackingError):
    """A file of rows cannot be used. `name` is the file's, `problem` a predicate."""

    def __init__(self, name: str, problem: str, cure: str = CURE, run_id: str | None = None) -> None:
        self.name, self.problem, self.cure = name, problem, cure
        super().__init__(f"{name}{f' of run {run_id}' if run_id else ''} {problem}; {cure}")


@contextmanager
def rows_of_run(run_id: str | None) -> Iterator[None]:
    """What is wrong with rows that are read here is said of this run."""
    try:
        yield
    except RowsError as error:
        raise RowsError(error.name, error.problem, error.cure, run_id) from None


def damaged(name: str, what: str) -> RowsError:
    """The error of a file that is damaged, or of another program."""
    return RowsError(name, f"is damaged, or was not written by evaltrack: {what}")


def newer(name: str, version: int, run_id: str | None = None) -> RowsError:
    """The error of a file that a version to come wrote."""
    own = f"rows of version {version}, and this one reads version {ROWS_VERSION}"
    return RowsError(name, f"was written by a newer version of evaltrack ({own})", "upgrade evaltrack", run_id)


RowOutcome = Literal["pass", "fail", "error", "not measured"]

JUDGE_ERROR: FailureKind = "judge_error"
"""Begins the `error` of a row whose target answered and whose judge failed."""

NAMELESS = "\0"
"""Begins the key of a source that lacks the one it is compared by; such a key says nothing but its place."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredRow:
    """One question of a run, or one trial of it.

    `scores` holds what was measured, by the names of `SCORES` and of `own`, the scores of one's own. A column that was
    not read has its default. `expected` is None where nothing is said of sources and empty where the target should
    decline; it names passages where `by_passage`, titles where `by_title`, else chunk ids. `trials` counts the measured
    trials that the row merges, `passes` those that passed. `history` holds the turns before the question. `trace_id`
    and `root_span_id` are of the trace that the target itself made in MLflow.
    """

    id: str
    question: str = ""
    answer: str | None = None
    expected_answer: str | None = None
    domain: str = ""
    difficulty: str | None = None
    category: str | None = None
    passed: bool | None = None
    error: str | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    unmeasured: str | None = None
    score_reasoning: str | None = None
    expected: tuple[str, ...] | None = None
    by_title: bool = False
    by_passage: bool | None = None
    sources: tuple[StoredSource, ...] | None = None
    abstained: bool | None = None
    model: str | None = None
    retrieval_digest: str | None = None
    duplicates: int = 0
    tool_calls: tuple[str, ...] | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None
    tokens_known: str | None = None
    tier: int | None = None
    claimed_band: int | None = None
    earned_band: int | None = None
    coupling_gap: int | None = None
    penalty: int | None = None
    hard_fails: tuple[str, ...] = ()
    mode: Mode | None = None
    verdicts: tuple[StoredVerdict, ...] = ()
    seconds: float = 0.0
    started_at: float = 0.0
    digest: str = ""
    position: int = 0
    trial: int | None = None
    trials: int | None = None
    passes: int | None = None
    history: tuple[StoredTurn, ...] = ()
    traceback: str | None = None
    trace_id: str | None = None
    root_span_id: str | None = None
    own: tuple[str, ...] = ()

    @classmethod
    def of(cls, columns: Mapping[str, Any], own: tuple[str, ...] = ()) -> StoredRow:
        """The row of these columns; those that are not there have their defaults, and so has null where a list is."""
        values = {name: _value(name, columns[name]) for name in _FIELDS if name in columns}
        scores = {name: columns[name] for name in (*_SCORES, *own) if columns.get(name) is not None}
        return cls(**values, own=own, scores=scores)

    def columns(self) -> dict[str, Any]:
        """The row as columns again, in their order; lists are lists, objects dictionaries."""
        return {column.name: self._column(column.name) for column in columns_with(self.own)}

    def _column(self, name: str) -> Any:
        if name in _SCORES or name in self.own:
            return self.scores.get(name)
        value = getattr(self, name)
        if name in ("sources", "verdicts"):
            return None if value is None else [object_of(each) for each in value]
        if name == "history":
            return [object_of(each) for each in value] or None
        if name == "hard_fails" and self.mode is None:
            return None
        return list(value) if isinstance(value, tuple) else value

    @property
    def outcome(self) -> RowOutcome:
        """What became of the question."""
        return outcome_of(self.error, passed=self.passed)

    @property
    def declined(self) -> bool:
        """Whether the target itself declined: it said so, or returned an empty list."""
        return bool(self.abstained) or self.sources == ()

    @property
    def judge_failed(self) -> bool:
        """Whether the target answered and its judge failed."""
        return (self.error or "").startswith(JUDGE_ERROR)

    @property
    def target_failed(self) -> bool:
        """Whether there is no answer to judge."""
        return bool(self.error) and not self.judge_failed

    @property
    def negative(self) -> bool:
        """Whether the target should decline."""
        return self.expected == ()

    @property
    def expected_field(self) -> str:
        """The field of a golden line that says what is in `expected`."""
        if self.by_passage:
            return "expected_passages"
        return "expected_sources" if self.by_title else "expected_chunks"

    @property
    def expected_keys(self) -> tuple[str, ...]:
        """What is expected of the question, as sources are compared."""
        expected = self.expected or ()
        return tuple(map(title_key, expected)) if self.by_title else expected

    @property
    def source_keys(self) -> list[tuple[str, ...]]:
        """The keys that each source is compared by: the passages that it finds, else its chunk id or title.

        A source that has none of these has a key of its own.
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
        """A source's name for people."""
        return self._compared_name(source) or source.title or "?"

    def without_texts(self) -> StoredRow:
        """The row without the texts of its sources, which are most of it."""
        sources = self.sources
        return self if sources is None else replace(self, sources=tuple(replace(each, text=None) for each in sources))


def outcome_of(error: str | None, *, passed: bool | None) -> RowOutcome:
    """What became of a question."""
    if error:
        return "error"
    return "not measured" if passed is None else "pass" if passed else "fail"


def stored_row(row: Row, k: int) -> StoredRow:
    """The row as its table will hold it, where the first k sources are scored."""
    return StoredRow.of(flatten(row, k))


def _value(name: str, stored: Any) -> Any:
    return LISTS[name](stored) if name in LISTS else stored


LISTS: Mapping[str, Callable[[Any], Any]] = {
    "expected": lambda values: None if values is None else tuple(values),
    "sources": lambda items: None if items is None else parts_of(StoredSource, items),
    "tool_calls": lambda values: None if values is None else tuple(values),
    "hard_fails": lambda values: tuple(values or ()),
    "verdicts": partial(parts_of, StoredVerdict),
    "history": partial(parts_of, StoredTurn),
}
"""What makes the value of each column that holds a list from the list, or from null."""

_SCORES = tuple(score.name for score in SCORES)
_FIELDS = tuple(column.name for column in COLUMNS if column.name not in _SCORES)
