"""Read what a target returned, in its short or long form, as a `Response`.

Usage and tool calls may also be what OpenAI's API gives, as JSON or as the objects of its client: usage with
`total_tokens`, `prompt_tokens_details` and `completion_tokens_details`, and tool calls with a `function`, whose
`arguments` are JSON in a text. Of the details the cached and the reasoning tokens are kept; arguments that are no JSON
object, as models write them now and then, are kept as a text under `UNREAD`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import isfinite
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from evaltrack.records import Response, Source, ToolCall, Usage
from evaltrack.records.base import storable

UNREAD = "unread"
"""The name under which arguments of a tool stand that are no JSON object."""

MAX_DEPTH = 100
"""Objects and lists within each other in the arguments of a tool; readers of JSON give up at 200, rows included."""

MAX_BITS = 4096
"""Of a whole number there: some 1,200 digits, where Python stops writing them at 4,300."""

DETAILS = {"cached_tokens": "prompt_tokens_details", "reasoning_tokens": "completion_tokens_details"}
USAGE_KEYS = (*Usage.model_fields, "total_tokens", *DETAILS.values())
FUNCTION_KEYS = tuple(ToolCall.model_fields)
TOOL_KEYS = (*FUNCTION_KEYS, "id", "type", "index", "function")


class InvalidResponseError(ValueError):
    """What a target returned cannot be read as a `Response`."""


def as_response(value: object) -> Response:
    """What a target returned, as a `Response`.

    Raises:
        InvalidResponseError: it has another form; the message says which.
    """
    try:
        response = _read(value)
        for place, call in enumerate(response.tool_calls):
            _storable(call.arguments, f"tool_calls.{place}.arguments")
    except ValidationError as error:
        raise InvalidResponseError(_explain(error)) from None
    except RecursionError:
        raise InvalidResponseError("is nested too deep") from None
    return response


def _read(value: object) -> Response:
    if isinstance(value, Response):
        return value
    if isinstance(value, str):
        return Response(answer=value)
    if isinstance(value, Mapping):
        return _from_mapping(value)
    if isinstance(value, list | tuple):
        return Response(sources=tuple(as_source(item) for item in value))
    raise InvalidResponseError(
        f"is {type(value).__name__}; return an answer, a list of sources, a mapping or a Response"
    )


def as_source(value: object) -> Source:
    """A source from its short form (a chunk id) or its fields; `id` is read as `chunk_id`."""
    if isinstance(value, Source):
        return value
    if isinstance(value, Mapping):
        fields = {("chunk_id" if name == "id" else name): item for name, item in value.items()}
        return Source.model_validate(fields)
    return Source.model_validate({"chunk_id": value})


def as_usage(value: object) -> object:
    """Usage in our own form where it is in OpenAI's; anything else as it is, to be validated.

    Raises:
        InvalidResponseError: it has a key that neither form knows.
    """
    fields = _plain(value)
    if not isinstance(fields, Mapping):
        return fields
    _check_known(fields, USAGE_KEYS, "usage")
    counts = {name: fields[name] for name in ("prompt_tokens", "completion_tokens") if fields.get(name) is not None}
    return {**counts, **told_parts(fields)}


def told_parts(usage: Mapping[str, Any]) -> dict[str, Any]:
    """The cached and the reasoning tokens of a usage, where it tells them: in our own form, or else in OpenAI's."""
    details = {name: _plain(usage.get(within)) for name, within in DETAILS.items()}
    parts = {name: part.get(name) for name, part in details.items() if isinstance(part, Mapping)}
    parts |= {name: usage[name] for name in DETAILS if usage.get(name) is not None}
    return {name: count for name, count in parts.items() if count is not None}


def _from_mapping(value: Mapping[Any, Any]) -> Response:
    fields = dict(value)
    if fields.get("sources") is not None:
        if not isinstance(fields["sources"], list | tuple):
            raise InvalidResponseError(f"sources: is {type(fields['sources']).__name__}; return a list, best first")
        fields["sources"] = tuple(_source_at(place, item) for place, item in enumerate(fields["sources"]))
    if fields.get("tool_calls") is not None:
        if not isinstance(fields["tool_calls"], list | tuple):
            raise InvalidResponseError(f"tool_calls: is {type(fields['tool_calls']).__name__}; return a list")
        fields["tool_calls"] = tuple(_tool_call(place, item) for place, item in enumerate(fields["tool_calls"]))
    if fields.get("usage") is not None:
        fields["usage"] = as_usage(fields["usage"])
    return Response.model_validate({name: item for name, item in fields.items() if item is not None})


def _tool_call(place: int, value: object) -> object:
    """A tool call in our own form, from its name, its fields or OpenAI's form."""
    if isinstance(value, str):
        return {"name": value}
    fields = _plain(value)
    if not isinstance(fields, Mapping):
        return fields
    within = f"tool_calls.{place}"
    _check_known(fields, TOOL_KEYS, within)
    function = _plain(fields.get("function"))
    if function is not None:
        if not isinstance(function, Mapping):
            raise InvalidResponseError(f"{within}.function: is {type(function).__name__}; return name and arguments")
        _check_known(function, FUNCTION_KEYS, f"{within}.function")
    call = {name: item for name in FUNCTION_KEYS if (item := (function or fields).get(name)) is not None}
    if isinstance(call.get("arguments"), str):
        call["arguments"] = _arguments(call["arguments"])
    return call


def _storable(value: object, place: str, depth: int = 0) -> None:
    """Refuse arguments that JSON cannot hold, or not give back: a row with them could not be kept."""
    if depth > MAX_DEPTH:
        raise InvalidResponseError(f"{place}: is nested deeper than {MAX_DEPTH}")
    if isinstance(value, Mapping):
        for name, item in value.items():
            _storable(name, place, depth + 1)
            _storable(item, place, depth + 1)
    elif isinstance(value, list | tuple):
        for item in value:
            _storable(item, place, depth + 1)
    elif what := _unstorable(value):
        raise InvalidResponseError(f"{place}: holds {what}")


def _unstorable(value: object) -> str:
    """What JSON cannot hold or not give back, where a single value is that."""
    if isinstance(value, str):
        try:
            storable(value.replace("\0", ""))
        except ValueError as error:
            return str(error).removeprefix("holds ")
    elif isinstance(value, int):
        return f"a whole number of more than {MAX_BITS:,} bits" if value.bit_length() > MAX_BITS else ""
    elif isinstance(value, float):
        return "" if isfinite(value) else "a number that is not finite"
    elif value is not None:
        return f"{type(value).__name__}, which is not JSON"
    return ""


def _arguments(text: str) -> dict[str, Any]:
    try:
        read = from_json(text or "{}", allow_inf_nan=False)
    except ValueError:
        read = None
    return read if isinstance(read, dict) else {UNREAD: text}


def _plain(value: object) -> object:
    """The fields of an object of OpenAI's client, which is a model of pydantic; our own records stay what they are."""
    dump = None if isinstance(value, Usage | ToolCall | type) else getattr(value, "model_dump", None)
    return dump() if callable(dump) else value


def _check_known(fields: Mapping[Any, Any], known: Collection[str], within: str) -> None:
    for name in fields:
        if name not in known:
            raise InvalidResponseError(f"{within}.{name}: is not known; known: {', '.join(known)}")


def _source_at(place: int, value: object) -> Source:
    try:
        return as_source(value)
    except ValidationError as error:
        raise InvalidResponseError(_explain(error, f"sources.{place}")) from None


def _explain(error: ValidationError, within: str = "") -> str:
    """The first finding as `place: what is wrong`."""
    first = error.errors(include_url=False)[0]
    place = ".".join(filter(None, [within, *map(str, first["loc"])]))
    message = first["msg"].removeprefix("Value error, ")
    return f"{place}: {message}" if place else message
