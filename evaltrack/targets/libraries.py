"""Reads results of LangChain, LangGraph, LlamaIndex, Haystack, OpenAI and MLflow's agents as fields of a response.

None of these libraries is imported: an object belongs to one if its class or one of its bases was defined there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import reduce
from operator import add
from typing import Any

from evaltrack.golden.importing.values import is_empty
from evaltrack.records import Usage
from evaltrack.records.base import as_key
from evaltrack.records.response import plain, read_usage

TITLES = ("title", "source", "file_name", "file_path", "filename", "name")
SCORES = ("score", "relevance_score")
ANSWER_KEYS = ("answer", "response", "output", "output_text", "result", "content", "text", "completion", "refusal")

Fields = dict[str, Any]


def source_fields(value: Any) -> Fields | None:
    """Return the fields of a source in a library's document or node, or in its JSON; None if it is no source.

    LangChain and MLflow have `page_content` and `metadata`, Databricks `content` and `doc_uri`, Haystack `content` and
    `meta`, OpenAI's file search `file_id` and `filename`.
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
        held = part.get("meta")
        usage = next((each for each in (held if isinstance(held, list) else [held]) if isinstance(each, Mapping)), {})
        fields |= {name: usage[name] for name in ("usage", "model") if name in usage}
    return fields or None


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
    given = (getattr(each, "usage_metadata", None) for each in written)
    usages = [Usage.model_validate(read_usage(each)) for each in given if each]
    text = written[-1].text
    return {
        "answer": str(text() if callable(text) and not isinstance(text, str) else text),
        "tool_calls": [call for each in written for call in each.tool_calls],
        "usage": reduce(add, usages) if len(usages) == len(written) else None,
        "model": written[-1].response_metadata.get("model_name"),
    }


def _openai(value: Any) -> Fields | None:
    """Return the fields of a chat completion, or of a result of the Responses API; its file searches are sources."""
    if hasattr(value, "choices"):
        return chat_fields(value.model_dump())
    if not hasattr(value, "output_text"):
        return None
    searches = [item.results for item in value.output if item.type == "file_search_call" and item.results is not None]
    sources = [result.model_dump() for results in searches for result in results] if searches else None
    return chat_fields(value.model_dump()) | {"answer": value.output_text, "sources": sources}


_READERS = {"langchain_core": _message, "llama_index": _query, "haystack": _haystack, "openai": _openai}


def chat_fields(value: Mapping[str, Any]) -> Fields:
    """Return the fields of a chat completion, of the messages of an agent, or of output items."""
    choices = value.get("choices")
    first = choices[:1] if isinstance(choices, list) else []
    items = [each.get("message") for each in first if isinstance(each, Mapping)]
    for name in ("messages", "output"):
        items += value[name] if isinstance(value.get(name), list) else []
    calls: list[Any] = []
    for item in (each for each in items if isinstance(each, Mapping)):
        if item.get("type") == "function_call":
            calls.append({"name": item.get("name"), "arguments": item.get("arguments")})
        elif isinstance(item.get("tool_calls"), list):
            calls += item["tool_calls"]
    return {
        "answer": "".join(texts_in(value)) or None,
        "tool_calls": calls or None,
        "usage": value.get("usage"),
        "model": value.get("model"),
        "sources": value.get("sources"),
    }


def texts_in(value: object) -> Iterator[str]:
    """Yield the texts of an answer in the forms of chat models: a text, messages, parts of one, choices, output items.

    Of a conversation it is the last message.
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        items = [each for each in value if not isinstance(each, Mapping) or _says(each)]
        is_chat = any(isinstance(each, Mapping) and ("role" in each or each.get("type") == "message") for each in items)
        for each in items[-1:] if is_chat else items:
            yield from texts_in(each)
    elif isinstance(value, Mapping):
        if isinstance(choices := value.get("choices"), list) and choices:
            yield from texts_in(choices[0])
            return
        names = ("message", "messages", *ANSWER_KEYS)
        name = next((each for each in names if not is_empty(value.get(each))), None)
        if name is not None:
            yield from texts_in(value[name])


def _says(item: Mapping[str, Any]) -> bool:
    """Return True if an item of a conversation is text of a person or a model, not a tool call or its result."""
    kind, role = item.get("type", "message"), item.get("role", "assistant")
    return kind in ("message", "text", "output_text", "ai", "human") and role in ("assistant", "ai", "user", "human")
