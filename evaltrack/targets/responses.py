"""Reads the return value of a target (a text, sources, a mapping, a library's result) as a `Response`.

Usage may have any form of `evaltrack.records.response`. Results, documents and nodes may be those of libraries
(`evaltrack.targets.libraries`). Unknown fields are not read; the response names them.

Tool calls are names, our own fields, or in the form of OpenAI, Anthropic, LangChain or DeepEval. OpenAI's arguments
are JSON in a text. Arguments that are no JSON object, which models write sometimes, are kept as text under `UNREAD`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from math import isnan
from typing import Any
from zlib import compress, decompress

from pydantic import ValidationError
from pydantic_core import from_json

from evaltrack.records import Response, Source
from evaltrack.records.base import without_halves
from evaltrack.records.finding_words import finding_words
from evaltrack.records.json_text import MAX_DEPTH, kind_of, too_deep
from evaltrack.records.response import plain, read_usage, unread_counts
from evaltrack.targets.failures import FailedElsewhereError, InvalidResponseError, refuse_error
from evaltrack.targets.libraries import response_fields, source_fields

MAX_ITEMS = 10_000
"""Maximum sources or tool calls of one response: ten times the largest k, and small enough for many responses."""

FIELDS = ("answer", "sources", "abstained", "tool_calls", "usage", "model")
SOURCE_FIELDS = tuple(Source.model_fields)
CONTEXTS = ("contexts", "retrieved_contexts", "retrieved_context", "retrieval_context", "context")
"""Other tools' names for the list of sources; its items are their texts."""

MOST_UNREAD = 20
"""Maximum names of unread fields in a response."""


FAILED = ("error", "failed", "failure")
"""Values of `status` that mean a failure if there is neither an answer nor a source."""

CLOSE = 0.8
"""Similarity (0 to 1) to the name of a missing field from which another name counts as a typo."""

FAILURE = b"F"
"""The first byte of a packed failure; no JSON object begins with it."""

UNREAD = "unread"
"""The key of tool arguments that are no JSON object."""

ARGUMENTS = ("arguments", "args", "input", "input_parameters")
TOOL_KEYS = ("name", *ARGUMENTS, "id", "type", "index", "function")


def as_response(value: object) -> Response:
    """Return the value that a target returned as a `Response`.

    Raises:
        FailedElsewhereError: it has an `error`.
        InvalidResponseError: it has another form; the message says which.
    """
    refuse_error(plain(value))
    try:
        response = _read(value)
        if isinstance(value, Response):
            calls = (
                call.model_copy(update={"arguments": _as_json(call.arguments, f"tool_calls.{place}.arguments")})
                for place, call in enumerate(value.tool_calls)
            )
            response = value.model_copy(update={"tool_calls": tuple(calls)}) if value.tool_calls else value
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise InvalidResponseError(finding_words(first, verb="it must be")) from None
    except RecursionError:
        raise InvalidResponseError("is nested too deeply") from None
    return response


def packed(outcome: Response | FailedElsewhereError) -> bytes:
    """Return a response or failure in little memory, for a target that holds very many."""
    if isinstance(outcome, Response):
        return compress(outcome.model_dump_json(exclude_defaults=True).encode(), 1)
    return compress(FAILURE + str(outcome).encode("utf-8", "replace"))


def unpacked(content: bytes) -> Response:
    """Return a packed response.

    Raises:
        FailedElsewhereError: it is a failure.
    """
    text = decompress(content)
    if text.startswith(FAILURE):
        raise FailedElsewhereError(text.removeprefix(FAILURE).decode())
    return Response.model_validate_json(text)


def _source(value: object, place: str, unread: list[str]) -> object:
    """Return a source, or the fields of one to be validated: a short form is a chunk id, and `id` is `chunk_id`.

    The names of unread fields are added to `unread`; `place` is the path of the source.
    """
    if isinstance(value, Source):
        return value
    fields, held = None if isinstance(value, str) else source_fields(value), plain(value)
    if fields is None and isinstance(held, Mapping):
        is_short = "chunk_id" not in held
        fields = {("chunk_id" if is_short and name == "id" else name): item for name, item in held.items()}
    if fields is None:
        return {"chunk_id": held}
    fields = take_fields(fields, SOURCE_FIELDS, place, unread)
    if isinstance(score := fields.get("score"), float) and isnan(score):  # tables hold NaN for missing values
        del fields["score"]
    return fields


def _read(value: object) -> Response:
    if isinstance(value, Response | str):
        return Response(answer=value) if isinstance(value, str) else value
    fields = response_fields(value)
    if fields is not None:
        return _from_mapping({name: item for name, item in fields.items() if item is not None})
    held = [value] if source_fields(value) is not None else plain(value)
    if isinstance(held, Mapping):
        return _from_mapping(held)
    if isinstance(held, list | tuple):
        _check_flat(held)
        return _from_mapping({"sources": held})
    what = "a stream" if hasattr(held, "__next__") or hasattr(held, "__anext__") else type(held).__name__
    cure = "collect it first, and return" if what == "a stream" else "return"
    raise InvalidResponseError(f"is {what}; {cure} an answer, a list of sources, a mapping or a Response")


def with_contexts(value: Mapping[Any, Any]) -> Mapping[Any, Any]:
    """Return the fields of a response; if it has no `sources`, a list of `CONTEXTS` becomes them."""
    name = next((each for each in CONTEXTS if isinstance(value.get(each), list | tuple)), None)
    if name is None or value.get("sources") is not None:
        return value
    sources = [{"text": each} if isinstance(each, str) else each for each in value[name]]
    return {**{each: item for each, item in value.items() if each != name}, "sources": sources}


def _is_prose(value: object) -> bool:
    """Return True if a source that is given as text is its content, not an id."""
    if not isinstance(value, str):
        return False
    ends, words = value.rstrip()[-1:], len(value.split())
    return words > 12 or "\n" in value.strip() or ends in ("。", "！") or (words > 4 and ends in (".", "!"))


def _check_flat(value: list[object] | tuple[object, ...]) -> None:
    """Refuse a pair of an answer and a list of sources, which would be read as two sources."""
    for place, item in enumerate(value):
        if isinstance(item, list | tuple) and source_fields(item) is None:
            raise InvalidResponseError(
                f"{place}: is {type(item).__name__}, not a source; to return an answer and its sources, "
                'return {"answer": …, "sources": […]}'
            )


def _from_mapping(value: Mapping[Any, Any]) -> Response:
    """Return the response of these fields."""
    unread: list[str] = []
    value = with_contexts({name: item for name, item in value.items() if name != "error"})
    fields = take_fields(value, FIELDS, "", unread)
    status = str(value.get("status"))
    if status.lower() in FAILED and not any(plain(fields.get(name)) for name in ("answer", "sources")):
        refuse_error({"error": value.get("message") or status})
    if unread and not any(name in value for name in FIELDS):
        raise InvalidResponseError(f"holds none of {', '.join(FIELDS)} but {', '.join(unread[:MOST_UNREAD])[:200]}")
    if "sources" in fields:
        sources = _list(fields["sources"], "sources", "it must be a list, best first")
        if any(map(_is_prose, sources)):
            sources = [{"text": each} if isinstance(each, str) else each for each in sources]
        fields["sources"] = [_source(item, f"sources.{place}", unread) for place, item in enumerate(sources)]
    if "tool_calls" in fields:
        calls = _list(fields["tool_calls"], "tool_calls", "it must be a list")
        fields["tool_calls"] = [as_tool_call(place, item, unread) for place, item in enumerate(calls)]
    if "usage" in fields:
        unread += [f"usage.{name}" for name in unread_counts(fields["usage"])]
        fields["usage"] = read_usage(fields["usage"])
    return Response.model_validate(fields | ({"unread": _names(unread)} if unread else {}))


def _list(value: object, name: str, cure: str) -> list[object] | tuple[object, ...]:
    items = plain(value)
    if not isinstance(items, list | tuple):
        raise InvalidResponseError(f"`{name}` is {kind_of(items)}; {cure}")
    if len(items) > MAX_ITEMS:
        raise InvalidResponseError(f"{name}: has {len(items):,} items; return at most {MAX_ITEMS:,}")
    return items


def _names(unread: list[str]) -> tuple[str, ...]:
    """Return a limited number of unique, shortened names."""
    return tuple(dict.fromkeys(ascii(name)[1:-1][:80] for name in unread))[:MOST_UNREAD]


def as_tool_call(place: int, value: object, unread: list[str]) -> object:
    """Return a tool call with our own fields, to be validated; the names of unread fields are added to `unread`.

    Raises:
        InvalidResponseError: its function is no object.
    """
    if isinstance(value, str):
        return {"name": value}
    fields = plain(value)
    if not isinstance(fields, Mapping):
        return fields
    within = f"tool_calls.{place}"
    fields = take_fields(fields, TOOL_KEYS, within, unread)
    function = plain(fields.get("function"))
    if function is not None:
        if not isinstance(function, Mapping):
            raise InvalidResponseError(f"{within}.function: is {type(function).__name__}; return name and arguments")
        fields = take_fields(function, ("name", *ARGUMENTS), f"{within}.function", unread)
    arguments = next((fields[name] for name in ARGUMENTS if name in fields), None)
    call = {"name": fields["name"]} if "name" in fields else {}
    if arguments is not None:
        is_text = isinstance(arguments, str)
        call["arguments"] = _arguments(arguments) if is_text else _as_json(arguments, f"{within}.arguments")
    return call


def _as_json(value: object, place: str) -> Any:
    """Return arguments as JSON data, including those with numpy values and records.

    Raises:
        InvalidResponseError: they cannot be written as JSON, so a row could not store them.
    """
    try:
        text = json.dumps(value, allow_nan=False, default=plain_item, ensure_ascii=False)
        made = from_json(without_halves(text))
    except (TypeError, ValueError) as error:
        raise InvalidResponseError(f"{place}: cannot be stored as JSON: {error}") from None
    if too_deep(made):
        raise InvalidResponseError(f"{place}: is nested deeper than {MAX_DEPTH}")
    return made


def plain_item(value: object) -> object:
    """Return a value that JSON does not know as one that it does; for `json.dumps`."""
    item = plain(value)
    if item is value and not isinstance(value, Mapping):
        raise TypeError(f"it holds {type(value).__name__}")
    return dict(item) if isinstance(item, Mapping) else item


def _arguments(text: str) -> dict[str, Any]:
    try:
        read = from_json(text or "{}", allow_inf_nan=False)
    except ValueError:
        read = None
    return read if isinstance(read, dict) else {UNREAD: text}


def take_fields(fields: Mapping[Any, Any], names: Collection[str], place: str, unread: list[str]) -> dict[str, Any]:
    """Return the fields in `names` that are not null; the names of the others are added to `unread`.

    `place` is their path, such as ``sources.0``; "" is the response itself.

    Raises:
        InvalidResponseError: a name resembles a missing field, as `source` resembles `sources`.
    """
    others = [name for name in fields if name not in names]
    missing = [name for name in names if name not in fields] if others else []
    for name in others:
        if meant := get_close_matches(str(name), missing, 1, CLOSE):
            raise InvalidResponseError(f"unknown field `{_at(place, name)}`; did you mean `{meant[0]}`?")
        unread.append(_at(_without_numbers(place), name))
    return {name: fields[name] for name in names if fields.get(name) is not None}


def _at(place: str, name: object) -> str:
    return f"{place}.{name}" if place else str(name)


def _without_numbers(place: str) -> str:
    """Return ``sources`` for ``sources.0``: unread fields are the same in all of them."""
    return ".".join(part for part in place.split(".") if not part.isdecimal())
