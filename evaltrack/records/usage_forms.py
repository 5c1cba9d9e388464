"""Tokens as servers and libraries report them, read as a `Usage`.

| form | prompt | completion |
| --- | --- | --- |
| Chat Completions, our own | `prompt_tokens` | `completion_tokens` |
| Responses, LangChain | `input_tokens` | `output_tokens` |
| Anthropic | `input_tokens` and what was read from and written to the cache, which it counts apart | `output_tokens` |
| Bedrock | `inputTokens` and the same | `outputTokens` |
| Gemini | `promptTokenCount`, `toolUsePromptTokenCount` | `candidatesTokenCount`, `thoughtsTokenCount` |
| Ollama | `prompt_eval_count` | `eval_count` |

Names in camel case may also be written in snake case, as the clients of these servers do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

from pydantic import BaseModel

from evaltrack.records.base import Record
from evaltrack.records.response import Usage


@dataclass(frozen=True)
class Dialect:
    """The names of counts in one form, in snake case: those of a kind are added up.

    The first name of `prompt` and of `completion` must be there; a dot leads into details.
    """

    prompt: tuple[str, ...]
    completion: tuple[str, ...]
    cached: tuple[str, ...]
    reasoning: tuple[str, ...] = ()


_CACHE = ("cache_read_input_tokens", "cache_creation_input_tokens", "cache_write_input_tokens")
DIALECTS = (
    Dialect(
        ("prompt_tokens",),
        ("completion_tokens",),
        ("cached_tokens", "prompt_tokens_details.cached_tokens", "prompt_cache_hit_tokens"),
        ("reasoning_tokens", "completion_tokens_details.reasoning_tokens"),
    ),
    Dialect(
        ("input_tokens", *_CACHE),
        ("output_tokens",),
        ("cache_read_input_tokens", "input_tokens_details.cached_tokens", "input_token_details.cache_read"),
        ("output_tokens_details.reasoning_tokens", "output_token_details.reasoning"),
    ),
    Dialect(
        ("prompt_token_count", "tool_use_prompt_token_count"),
        ("candidates_token_count", "thoughts_token_count"),
        ("cached_content_token_count",),
        ("thoughts_token_count",),
    ),
    Dialect(("prompt_eval_count",), ("eval_count",), ()),
)


def read_usage(value: object) -> object:
    """Usage in our own form; what is in no form that is known stays as it is, to be validated.

    `value` is an object of a client, or what JSON holds of it.
    """
    held = plain(value)
    if not isinstance(held, Mapping):
        return held
    snake = {_snake(name): item for name, item in held.items()}
    for dialect in DIALECTS:
        if _known(snake, dialect):
            return _in_our_form(snake, dialect)
    return {name: item for name, item in held.items() if name in Usage.model_fields}


def unread_counts(value: object) -> Iterator[str]:
    """The names in a usage that no form knows and that may count something: those that hold a number."""
    held = plain(value)
    if not isinstance(held, Mapping):
        return
    known = {name.partition(".")[0] for each in DIALECTS for name in _names(each)} | {
        "total_tokens",
        "total_token_count",
    }
    yield from (str(name) for name, item in held.items() if _counts(item) and _snake(name) not in known)


def plain(value: object) -> object:
    """An object by its fields (a dataclass, a named tuple, a model of pydantic), values of numpy and pandas as lists.

    Anything else, and our own records, stay what they are.
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


def _known(usage: Mapping[str, Any], dialect: Dialect) -> bool:
    return usage.get(dialect.prompt[0]) is not None or usage.get(dialect.completion[0]) is not None


def _in_our_form(usage: Mapping[str, Any], dialect: Dialect) -> dict[str, Any]:
    """The counts of one form; those that are missing or no numbers are left to be refused with their names."""
    found = {
        "prompt_tokens": _together(usage, dialect.prompt),
        "completion_tokens": _together(usage, dialect.completion),
        "cached_tokens": _first(usage, dialect.cached),
        "reasoning_tokens": _first(usage, dialect.reasoning),
    }
    return {name: count for name, count in found.items() if count is not None}


def _together(usage: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    counts = [count for name in names if (count := usage.get(name)) is not None]
    if len(counts) < 2 or not all(map(_counts, counts)):
        return counts[0] if counts else None
    return sum(counts)


def _first(usage: Mapping[str, Any], places: tuple[str, ...]) -> Any:
    return next((count for place in places if (count := _at(usage, place)) is not None), None)


def _at(usage: Mapping[str, Any], place: str) -> Any:
    name, _, rest = place.partition(".")
    item = usage.get(name)
    if not rest:
        return item
    within = plain(item)
    return within.get(rest) if isinstance(within, Mapping) else None


def _names(dialect: Dialect) -> tuple[str, ...]:
    return (*dialect.prompt, *dialect.completion, *dialect.cached, *dialect.reasoning)


def _counts(item: object) -> bool:
    return isinstance(item, int | float) and not isinstance(item, bool)


def _snake(name: object) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", str(name)).lower()
