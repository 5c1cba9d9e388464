"""Reads the return value of a target, in its short or long form, as a `Response`.

Usage may have any form of `evaltrack.records.response`. Results, documents and nodes may be objects of LangChain,
LangGraph, LlamaIndex, Haystack and OpenAI's client, none of which is imported: an object belongs to a library if its
class or one of its bases was defined there. Unknown fields are not read; the response names them.

Tool calls are names, our own fields, or in the form of OpenAI, Anthropic, LangChain or DeepEval. OpenAI's arguments
are JSON in a text. Arguments that are no JSON object, which models write sometimes, are kept as text under `UNREAD`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from math import isnan
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from evaltrack.records import Response, Source
from evaltrack.records.base import as_key, without_halves
from evaltrack.records.finding_words import finding_words
from evaltrack.records.json_text import MAX_DEPTH, kind_of, too_deep
from evaltrack.records.response import plain, read_usage, unread_counts
from evaltrack.targets.failures import InvalidResponseError, refuse_error

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
        raise InvalidResponseError(_explain(error)) from None
    except RecursionError:
        raise InvalidResponseError("is nested too deep") from None
    return response


def as_source(value: object, place: str = "", unread: list[str] | None = None) -> Source:
    """Return a source from its short form (a chunk id), its fields or a library's object; `id` is read as `chunk_id`.

    The names of unread fields are added to `unread`; `place` is the path of the source.
    """
    if isinstance(value, Source):
        return value
    fields: Any = None if isinstance(value, str) else source_fields(value)
    value = plain(value)
    if fields is None and isinstance(value, Mapping):
        fields = value
        if "id" in value and "chunk_id" not in value:
            fields = {("chunk_id" if name == "id" else name): item for name, item in value.items()}
    if fields is None:
        return Source.model_validate({"chunk_id": value})
    fields = take_fields(fields, SOURCE_FIELDS, place, [] if unread is None else unread)
    if isinstance(score := fields.get("score"), float) and isnan(score):  # tables hold NaN for missing values
        del fields["score"]
    return Source.model_validate(fields)


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
        return _from_mapping({"sources": held}, "")
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


def _from_mapping(value: Mapping[Any, Any], within: str = "sources") -> Response:
    """Return the response of these fields; `within` is the prefix of a source's path in errors."""
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
        fields["sources"] = tuple(_source_at(place, item, within, unread) for place, item in enumerate(sources))
    if "tool_calls" in fields:
        calls = _list(fields["tool_calls"], "tool_calls", "it must be a list")
        fields["tool_calls"] = tuple(as_tool_call(place, item, unread) for place, item in enumerate(calls))
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


def _source_at(place: int, value: object, within: str, unread: list[str]) -> Source:
    try:
        return as_source(value, f"{within}.{place}" if within else "", unread)
    except ValidationError as error:
        raise InvalidResponseError(_explain(error, f"{within}.{place}" if within else "")) from None


def _explain(error: ValidationError, within: str = "") -> str:
    """Return the first error as text with its path."""
    first = error.errors(include_url=False)[0]
    place = tuple(within.split(".")) if within else ()
    return finding_words({**first, "loc": (*place, *first["loc"])}, verb="it must be")


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
        text = json.dumps(value, allow_nan=False, default=_plain_item, ensure_ascii=False)
        made = from_json(without_halves(text))
    except (TypeError, ValueError) as error:
        raise InvalidResponseError(f"{place}: cannot be stored as JSON: {error}") from None
    if too_deep(made):
        raise InvalidResponseError(f"{place}: is nested deeper than {MAX_DEPTH}")
    return made


def _plain_item(value: object) -> object:
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


TITLES = ("title", "source", "file_name", "file_path", "filename", "name")
SCORES = ("score", "relevance_score")

Fields = dict[str, Any]


def source_fields(value: Any) -> Fields | None:
    """Return the fields of a source in a library's document or node, or in its JSON; None if it is no source.

    LangChain and MLflow have `page_content` and `metadata`, Databricks `content` and `doc_uri`, Haystack `content` and
    `meta`, OpenAI the result of a file search.
    """
    if isinstance(value, tuple) and len(value) == 2 and (found := source_fields(value[0])):
        return found | {"score": float(value[1])}
    if "llama_index" in _libraries(value) and hasattr(value, "get_content"):
        node = getattr(value, "node", value)
        return _source(node.get_content(), node.metadata, node.node_id, getattr(value, "score", None))
    held = plain(value)
    if not isinstance(held, Mapping):
        return None
    if "file_id" in held and "filename" in held:
        named = {"title": held["filename"]} | (held.get("attributes") or {})
        return _source(held.get("text"), named, held["file_id"], held.get("score"))
    if "page_content" not in held and not ("content" in held and held.keys() & {"meta", "doc_uri"}):
        return None
    metadata = held.get("metadata") if "page_content" in held else held.get("meta", held)
    return _source(held.get("page_content", held.get("content")), metadata, held.get("id"), held.get("score"))


def response_fields(value: object) -> Fields | None:
    """Return the fields of a response in a library's result; None if it is no such result."""
    if isinstance(value, Mapping):
        return _of_mapping(value)
    libraries = _libraries(value)
    return next((read(value) for library, read in _READERS.items() if library in libraries), None)


def _libraries(value: object) -> set[str]:
    """Return the packages that define the class of `value` and its bases."""
    return {cls.__module__.partition(".")[0] for cls in type(value).__mro__}


def _source(text: object, metadata: object, own_id: object, score: object = None) -> Fields:
    """Return the fields of a source; `doc_uri` is its id if it has none, and its URL if it is a link."""
    held: Mapping[str, Any] = metadata if isinstance(metadata, Mapping) else {}
    place = held.get("doc_uri")
    ids = (as_key(each) for each in (held.get("chunk_id"), held.get("id"), own_id, place))
    return {
        "chunk_id": next((each for each in ids if isinstance(each, str) and each.strip()), None),
        "text": text,
        "score": score if score is not None else next((held[name] for name in SCORES if name in held), None),
        "title": _first(held, TITLES),
        "url": _first(held, ("url",)) or (place if isinstance(place, str) and "://" in place else None),
    }


def _first(metadata: Mapping[str, Any], names: Iterable[str]) -> str | None:
    return next((item for name in names if isinstance(item := metadata.get(name), str) and item), None)


def _of_mapping(value: Mapping[Any, Any]) -> Fields | None:
    """Return the fields of a chain's or a graph's result, or of a pipeline's results by component."""
    messages = value.get("messages")
    if isinstance(messages, Sequence) and messages and "langchain_core" in _libraries(messages[-1]):
        return _conversation(messages)
    for sources in ("context", "source_documents"):
        found = value.get(sources)
        if isinstance(found, Sequence) and not isinstance(found, str) and all(map(source_fields, found)):
            others = {name: value.get(name) for name in ("tool_calls", "usage", "model")}
            return {"answer": value.get("answer", value.get("result")), "sources": found, **others}
    parts = [part for part in value.values() if isinstance(part, Mapping)]
    return _pipeline(parts) if parts and len(parts) == len(value) else None


def _pipeline(parts: Iterable[Mapping[str, Any]]) -> Fields | None:
    """Return the fields from a pipeline's components; the last component with documents counts."""
    fields: Fields = {}
    for part in parts:
        for name in ("answers", "replies"):
            if isinstance(items := part.get(name), list) and items:
                read = {"answer": items[0]} if isinstance(items[0], str) else _haystack(items[0])
                fields |= {field: item for field, item in (read or {}).items() if item is not None}
        if isinstance(documents := part.get("documents"), list) and all(map(source_fields, documents)):
            fields["sources"] = documents
        usage = next(iter(_metadata(part)), {})
        fields |= {name: usage[name] for name in ("usage", "model") if name in usage}
    return fields or None


def _metadata(part: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    meta = part.get("meta")
    yield from (each for each in (meta if isinstance(meta, list) else [meta]) if isinstance(each, Mapping))


def _message(value: Any) -> Fields | None:
    return _conversation([value]) if hasattr(value, "response_metadata") else None


def _query(value: Any) -> Fields | None:
    return {"answer": value.response, "sources": value.source_nodes} if hasattr(value, "source_nodes") else None


def _haystack(value: Any) -> Fields | None:
    """Return the fields of a generated answer with its documents, or of a chat message."""
    meta = getattr(value, "meta", None) or {}
    known = {name: meta[name] for name in ("usage", "model") if meta.get(name)}
    if hasattr(value, "documents") and hasattr(value, "data"):
        return {"answer": value.data, "sources": value.documents, **known}
    if hasattr(value, "tool_calls") and hasattr(value, "text"):
        calls = [{"name": call.tool_name, "arguments": call.arguments} for call in value.tool_calls]
        return {"answer": value.text, "tool_calls": calls, **known}
    return None


def _conversation(messages: Sequence[Any]) -> Fields:
    """Return the last model message as the answer, with the tool calls and tokens of all model messages.

    Only messages after the last one of a person count.
    """
    people = [place for place, message in enumerate(messages) if getattr(message, "type", "") == "human"]
    written = [each for each in messages[people[-1] + 1 if people else 0 :] if getattr(each, "type", "") == "ai"]
    if not written:
        return {"answer": None}
    usages = [each.usage_metadata for each in written if getattr(each, "usage_metadata", None)]
    text = written[-1].text
    return {
        "answer": str(text() if callable(text) and not isinstance(text, str) else text),
        "tool_calls": [call for each in written for call in each.tool_calls],
        "usage": _added(usages) if len(usages) == len(written) else None,
        "model": written[-1].response_metadata.get("model_name"),
    }


def _added(usages: Sequence[Mapping[str, Any]]) -> Fields:
    """Return the summed counts of several calls, with the details that any of them gives."""
    total: Fields = {}
    for usage in usages:
        for name, item in usage.items():
            total[name] = (
                _added([total.get(name, {}), item]) if isinstance(item, Mapping) else total.get(name, 0) + item
            )
    return total


def _openai(value: Any) -> Fields | None:
    """Return the fields of a chat completion, or of a result of the Responses API."""
    if hasattr(value, "output_text"):
        return _openai_response(value)
    if not hasattr(value, "choices"):
        return None
    message = value.choices[0].message
    return {
        "answer": message.content or message.refusal,
        "tool_calls": message.tool_calls,
        "usage": value.usage,
        "model": value.model,
    }


def _openai_response(value: Any) -> Fields:
    """Return the fields of a result of the Responses API; results of a file search are the sources."""
    calls = [item for item in value.output if item.type == "function_call"]
    searches = [item for item in value.output if item.type == "file_search_call"]
    fields: Fields = {"answer": value.output_text, "usage": value.usage, "model": value.model}
    fields["tool_calls"] = [{"name": call.name, "arguments": call.arguments} for call in calls]
    if any(search.results is not None for search in searches):
        fields["sources"] = [result for search in searches for result in search.results or ()]
    return fields


_READERS = {"langchain_core": _message, "llama_index": _query, "haystack": _haystack, "openai": _openai}
