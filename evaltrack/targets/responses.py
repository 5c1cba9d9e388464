"""Read what a target returned, in its short or long form, as a `Response`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from evaltrack.records import Response, Source


class InvalidResponseError(ValueError):
    """What a target returned cannot be read as a `Response`."""


def as_response(value: object) -> Response:
    """What a target returned, as a `Response`.

    Raises:
        InvalidResponseError: it has another form; the message says which.
    """
    try:
        if isinstance(value, Response):
            return value
        if isinstance(value, str):
            return Response(answer=value)
        if isinstance(value, Mapping):
            return _from_mapping(value)
        if isinstance(value, list | tuple):
            return Response(sources=tuple(as_source(item) for item in value))
    except ValidationError as error:
        raise InvalidResponseError(_explain(error)) from None
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


def _from_mapping(value: Mapping[Any, Any]) -> Response:
    fields = dict(value)
    if fields.get("sources") is not None:
        if not isinstance(fields["sources"], list | tuple):
            raise InvalidResponseError(f"sources: is {type(fields['sources']).__name__}; return a list, best first")
        fields["sources"] = tuple(_source_at(place, item) for place, item in enumerate(fields["sources"]))
    if fields.get("tool_calls") is not None:
        if not isinstance(fields["tool_calls"], list | tuple):
            raise InvalidResponseError(f"tool_calls: is {type(fields['tool_calls']).__name__}; return a list")
        fields["tool_calls"] = tuple({"name": c} if isinstance(c, str) else c for c in fields["tool_calls"])
    return Response.model_validate({name: item for name, item in fields.items() if item is not None})


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
