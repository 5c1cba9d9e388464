"""Read what a target returned, in its short or long form, as a `Response`.

Usage may be in any form of `evaltrack.targets.usage`, tool calls in any of `evaltrack.targets.tool_calls`, and results,
documents and nodes may be the objects of the libraries in `evaltrack.targets.libraries`. Fields that nobody knows are
not read; the response names them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from evaltrack.records import Response, Source
from evaltrack.records.finding_words import finding_words
from evaltrack.records.json_text import kind_of
from evaltrack.targets.libraries import response_fields, source_fields
from evaltrack.targets.response_fields import InvalidResponseError, take_fields
from evaltrack.targets.tool_calls import as_tool_call, check_storable
from evaltrack.targets.usage import read_usage, unread_counts

FIELDS = ("answer", "sources", "abstained", "tool_calls", "usage", "model")
SOURCE_FIELDS = tuple(Source.model_fields)
SOURCE_NAMES = frozenset(SOURCE_FIELDS)
PLAIN_FIELDS = frozenset({"answer", "sources", "abstained", "model"})
"""Fields of a response that have one form each."""

MOST_UNREAD = 20
"""Names of fields that a response says it has not read."""


def as_response(value: object) -> Response:
    """What a target returned, as a `Response`.

    Raises:
        InvalidResponseError: it has another form; the message says which.
    """
    try:
        response = _read(value)
        for place, call in enumerate(response.tool_calls):
            check_storable(call.arguments, f"tool_calls.{place}.arguments")
    except ValidationError as error:
        raise InvalidResponseError(_explain(error)) from None
    except RecursionError:
        raise InvalidResponseError("is nested too deep") from None
    return response


def as_source(value: object, place: str = "", unread: list[str] | None = None) -> Source:
    """A source from its short form (a chunk id), its fields or a library's object; `id` is read as `chunk_id`.

    The names of fields that are not read are added to `unread`; `place` is where the source stands.
    """
    if isinstance(value, Source):
        return value
    fields: Any = None if type(value) is dict else source_fields(value)  # most are, and no library's object is
    if fields is None and isinstance(value, Mapping):
        fields = value
        if "id" in value and "chunk_id" not in value:
            fields = {("chunk_id" if name == "id" else name): item for name, item in value.items()}
    if fields is None:
        return Source.model_validate({"chunk_id": value})
    return Source.model_validate(take_fields(fields, SOURCE_FIELDS, place, [] if unread is None else unread))


def _read(value: object) -> Response:
    if isinstance(value, Response):
        return value
    if isinstance(value, str):
        return Response(answer=value)
    fields = response_fields(value)
    if fields is not None:
        return _from_mapping({name: item for name, item in fields.items() if item is not None})
    if isinstance(value, Mapping):
        return _plain_response(value) or _from_mapping(value)
    if isinstance(value, list | tuple):
        _check_flat(value)
        return _from_mapping({"sources": value}, "")
    if source_fields(value) is not None:
        return _from_mapping({"sources": [value]}, "")
    raise InvalidResponseError(
        f"is {type(value).__name__}; return an answer, a list of sources, a mapping or a Response"
    )


def _plain_response(value: Mapping[Any, Any]) -> Response | None:
    """The response of fields that need no reading, as most have; None where they do, or where one of them is wrong."""
    sources = value.get("sources")
    if not value or not value.keys() <= PLAIN_FIELDS or type(sources) is not list:
        return None
    if not all(type(source) is dict and source.keys() <= SOURCE_NAMES for source in sources):
        return None
    try:
        return Response.model_validate(value)
    except ValidationError:  # `_from_mapping` says where
        return None


def _check_flat(value: list[object] | tuple[object, ...]) -> None:
    """Refuse an answer beside a list of sources, which would be read as two sources."""
    for place, item in enumerate(value):
        if isinstance(item, list | tuple) and source_fields(item) is None:
            raise InvalidResponseError(
                f"{place}: is {type(item).__name__}, which is no source; to return an answer and its sources, "
                'return {"answer": …, "sources": […]}'
            )


def _from_mapping(value: Mapping[Any, Any], within: str = "sources") -> Response:
    """The response of these fields; `within` is how the place of a source begins in errors."""
    unread: list[str] = []
    fields = take_fields(value, FIELDS, "", unread)
    if unread and not any(name in value for name in FIELDS):
        raise InvalidResponseError(f"holds none of {', '.join(FIELDS)} but {', '.join(unread[:MOST_UNREAD])[:200]}")
    if "sources" in fields:
        sources = _list(fields["sources"], "sources", "it must be a list, best first")
        fields["sources"] = tuple(_source_at(place, item, within, unread) for place, item in enumerate(sources))
    if "tool_calls" in fields:
        calls = _list(fields["tool_calls"], "tool_calls", "it must be a list")
        fields["tool_calls"] = tuple(as_tool_call(place, item, unread) for place, item in enumerate(calls))
    if "usage" in fields:
        unread += [f"usage.{name}" for name in unread_counts(fields["usage"])]
        fields["usage"] = read_usage(fields["usage"])
    return Response.model_validate(fields | ({"unread": _names(unread)} if unread else {}))


def _list(value: object, name: str, cure: str) -> list[object] | tuple[object, ...]:
    if not isinstance(value, list | tuple):
        raise InvalidResponseError(f"`{name}` is {kind_of(value)}; {cure}")
    return value


def _names(unread: list[str]) -> tuple[str, ...]:
    """A bounded number of names, each once and of bounded length."""
    return tuple(dict.fromkeys(ascii(name)[1:-1][:80] for name in unread))[:MOST_UNREAD]


def _source_at(place: int, value: object, within: str, unread: list[str]) -> Source:
    try:
        return as_source(value, f"{within}.{place}" if within else "", unread)
    except ValidationError as error:
        raise InvalidResponseError(_explain(error, f"{within}.{place}" if within else "")) from None


def _explain(error: ValidationError, within: str = "") -> str:
    """The first finding in words, with its place."""
    first = error.errors(include_url=False)[0]
    place = tuple(within.split(".")) if within else ()
    return finding_words({**first, "loc": (*place, *first["loc"])}, verb="it must be")
