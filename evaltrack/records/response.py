"""Defines a target's response: answer, ranked sources, tool calls, tokens; reads token counts of other libraries."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, Field, model_validator

from evaltrack.records.base import ForeignKey, ForeignText, FreeObject, Record

TRACE_ID = r"^tr-[0-9a-f]{32}$"
SPAN_ID = r"^[0-9a-f]{16}$"


class TracePlace(Record):
    """A trace and its root span."""

    trace_id: Annotated[str, Field(pattern=TRACE_ID)]
    span_id: Annotated[str, Field(pattern=SPAN_ID)]


class TraceHome(Record):
    """The run to which the traces of an application belong while it is evaluated.

    If `joins` is True, they are the traces of the questions, in the experiment of the run; else they are only linked to
    it. `store` is the address of its MLflow store, and may hold a password.
    """

    run_id: str
    experiment_id: str
    store: str
    joins: bool


MOST_TOKENS = 10**15
"""The most tokens of one kind for one question. More is a mistake, and sums could exceed the integers of databases."""

TokenCount = Annotated[int, Field(ge=0, le=MOST_TOKENS)]


TEXT_NAME = re.compile(r"text-[0-9a-f]{12}")
"""The `chunk_id` of a source that has only a text. It distinguishes texts; no question expects it."""


class Source(Record):
    """One retrieved item: a `chunk_id`, a `title` or a `text`. Its rank is its place in `Response.sources`."""

    chunk_id: ForeignKey | None = None
    title: ForeignText | None = None
    url: ForeignText | None = None
    text: ForeignText | None = None
    score: float | None = None

    @model_validator(mode="before")
    @classmethod
    def _named(cls, values: Any) -> Any:
        if not isinstance(values, dict) or values.get("chunk_id") is not None or values.get("title") is not None:
            return values
        if not (text := values.get("text")) or not isinstance(text, str):
            raise ValueError("a source needs a `chunk_id`, a `title` or a `text`")
        digest = hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()
        return values | {"chunk_id": f"text-{digest[:12]}"}

    @property
    def own_id(self) -> str | None:
        """Its id; None if that only names its text."""
        return None if self.chunk_id is None or TEXT_NAME.fullmatch(self.chunk_id) else self.chunk_id


class ToolCall(Record):
    """One call of a tool by the target."""

    name: ForeignKey
    arguments: FreeObject = Field(default_factory=dict)


class Usage(Record):
    """Reported tokens of one question, over all calls.

    `cached_tokens` are the part of the prompt in the server's cache, `reasoning_tokens` the hidden part of the
    completion; None if the server does not report them.
    """

    prompt_tokens: TokenCount
    completion_tokens: TokenCount
    cached_tokens: TokenCount | None = None
    reasoning_tokens: TokenCount | None = None

    @property
    def total_tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        """Return the sum of two usages. A part that only one of them reports is taken from that one.

        A sum may exceed `MOST_TOKENS`, so it is not validated: an error would end the run.
        """
        return Usage.model_construct(
            prompt_tokens=self.prompt_tokens + other.prompt_tokens,
            completion_tokens=self.completion_tokens + other.completion_tokens,
            cached_tokens=_reported_sum(self.cached_tokens, other.cached_tokens),
            reasoning_tokens=_reported_sum(self.reasoning_tokens, other.reasoning_tokens),
        )


def together(one: Usage | None, other: Usage | None) -> Usage | None:
    """Return the sum of the reported usages; None if there is none."""
    return one + other if one and other else one or other


def _reported_sum(one: int | None, other: int | None) -> int | None:
    """Return the sum of the reported numbers; None if there is none."""
    return None if one is None and other is None else (one or 0) + (other or 0)


class Returned(Record):
    """The properties that a response and a row compute from an answer, its sources and its tool calls."""

    if TYPE_CHECKING:  # each has its own types of these fields
        answer: str | None
        sources: Sequence[Record] | None
        abstained: bool | None
        tool_calls: Sequence[object] | None

    @property
    def answer_is_empty(self) -> bool:
        """True if there is an answer without words."""
        return self.answer is not None and not self.answer.strip()

    @property
    def holds_nothing(self) -> bool:
        """True if there is no answer or a blank one, no sources and no tool calls, and the target did not decline."""
        return not (self.declined or self.sources or self.tool_calls or (self.answer or "").strip())

    @property
    def declined(self) -> bool:
        """True if the target says that it does not know: by its flag, or by an empty list of sources."""
        return bool(self.abstained) or (self.sources is not None and not self.sources)


class Response(Returned):
    """The response of a target to one question.

    `sources` is ranked, best first. An empty tuple means "found nothing" and is measured; None means that the target
    does not retrieve, so retrieval is not measured. `abstained` means "I do not know". `model` is the model that
    answered, if known. `unread` names unknown fields of the response. `seconds` is the duration of a recorded response,
    if known. `trace` holds the target's spans.
    """

    answer: ForeignText | None = None
    sources: tuple[Source, ...] | None = None
    abstained: bool = False
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    model: ForeignText | None = None
    unread: tuple[ForeignText, ...] = ()
    seconds: float | None = Field(default=None, ge=0)
    trace: TracePlace | None = None


TOTALS = {
    "prompt_tokens": (
        ("prompt_tokens",),
        ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "cache_write_input_tokens"),
        ("prompt_token_count", "tool_use_prompt_token_count"),
        ("prompt_eval_count",),
    ),
    "completion_tokens": (
        ("completion_tokens",),
        ("output_tokens",),
        ("candidates_token_count", "thoughts_token_count"),
        ("eval_count",),
    ),
}
"""The counts in snake case that are added up, in the format of Chat Completions; of Responses, LangChain, Anthropic and
Bedrock; of Gemini; and of Ollama."""

PARTS = {
    "cached_tokens": (
        "cached_tokens",
        "prompt_tokens_details.cached_tokens",
        "prompt_cache_hit_tokens",
        "cache_read_input_tokens",
        "input_tokens_details.cached_tokens",
        "input_token_details.cache_read",
        "cached_content_token_count",
    ),
    "reasoning_tokens": (
        "reasoning_tokens",
        "completion_tokens_details.reasoning_tokens",
        "output_tokens_details.reasoning_tokens",
        "output_token_details.reasoning",
        "thoughts_token_count",
    ),
}
"""The names of counts that are parts of the totals; a dot leads into details. The first that is present counts."""


def read_usage(value: object) -> object:
    """Return a usage with evaltrack's names. Missing counts and other values are left to validation, which names them.

    `value` is an object of a client library, or its JSON.
    """
    held = plain(value)
    if not isinstance(held, Mapping):
        return held
    counts = _flat(held)
    read = {name: _total(counts, formats) for name, formats in TOTALS.items()}
    read |= {name: next((counts[each] for each in names if each in counts), None) for name, names in PARTS.items()}
    return {name: count for name, count in read.items() if count is not None}


def plain(value: object) -> object:
    """Return the fields of an object (dataclass, named tuple, pydantic model), and numpy and pandas values as lists.

    All other objects and evaltrack's own records are returned as they are.
    """
    kind = type(value)
    if kind.__module__ == "builtins" or isinstance(value, type | Record):
        return value
    if is_dataclass(value):
        return {each.name: getattr(value, each.name) for each in fields(value)}
    if isinstance(value, BaseModel):
        return dict(value)
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return value._asdict()
    if kind.__module__.partition(".")[0] not in ("numpy", "pandas"):
        return value
    whole: Any = value
    return whole.to_dict("records") if hasattr(value, "columns") else whole.tolist()


def _flat(usage: Mapping[Any, Any]) -> dict[str, Any]:
    """Return the items that are not None by their names in snake case, those of details as ``details.name``."""
    flat: dict[str, Any] = {}
    for name, item in usage.items():
        details = plain(item)
        if isinstance(details, Mapping):
            flat |= {f"{_snake(name)}.{part}": each for part, each in details.items() if each is not None}
        if item is not None:
            flat[_snake(name)] = item
    return flat


def _total(counts: Mapping[str, Any], formats: tuple[tuple[str, ...], ...]) -> Any:
    """Return the sum of the numbers of the first format that occurs; the first item if one of them is no number."""
    for names in formats:
        if found := [counts[name] for name in names if name in counts]:
            return sum(found) if all(map(_counts, found)) else found[0]
    return None


def _counts(item: object) -> bool:
    return isinstance(item, int | float) and not isinstance(item, bool)


def _snake(name: object) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(name)).lower()
