"""What LangChain, LangGraph, LlamaIndex, Haystack and OpenAI's client return, as the fields of a response.

Nothing of them is imported: an object is one of a library's where its class or one of its bases was defined there. A
chunk's id is the `chunk_id` of its metadata, else the `id` there, else the id that the library gave it; its title is
the `title` of its metadata, else the name of its file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from evaltrack.records.base import as_key
from evaltrack.records.usage_forms import plain

TITLES = ("title", "source", "file_name", "file_path", "filename", "name")
SCORES = ("score", "relevance_score")

Fields = dict[str, Any]


def source_fields(value: Any) -> Fields | None:
    """The fields of a source that a library's document or node holds, or what JSON holds of one; None where it is none.

    LangChain and MLflow have `page_content` and `metadata`, Databricks `content` and `doc_uri`, Haystack `content` and
    `meta`, OpenAI the result of a search of files.
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
    """The fields of a response that a library's result holds; None where it is none."""
    if isinstance(value, Mapping):
        return _of_mapping(value)
    libraries = _libraries(value)
    return next((read(value) for library, read in _READERS.items() if library in libraries), None)


def _libraries(value: object) -> set[str]:
    """The packages in which the class of `value` and its bases were defined."""
    return {cls.__module__.partition(".")[0] for cls in type(value).__mro__}


def _source(text: object, metadata: object, own_id: object, score: object = None) -> Fields:
    """The fields of a source; its place counts as its id where it has none, and as its address where it is a link."""
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
    """A chain's or a graph's result, or that of a pipeline by component."""
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
    """What a pipeline's components gave; of several that give documents the last one counts."""
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
    """A generated answer with its documents, or a chat message."""
    meta = getattr(value, "meta", None) or {}
    known = {name: meta[name] for name in ("usage", "model") if meta.get(name)}
    if hasattr(value, "documents") and hasattr(value, "data"):
        return {"answer": value.data, "sources": value.documents, **known}
    if hasattr(value, "tool_calls") and hasattr(value, "text"):
        calls = [{"name": call.tool_name, "arguments": call.arguments} for call in value.tool_calls]
        return {"answer": value.text, "tool_calls": calls, **known}
    return None


def _conversation(messages: Sequence[Any]) -> Fields:
    """The last message of a model is the answer; the tools and the tokens are those of all that it wrote.

    The messages of one question begin after the last one of a person.
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
    """The counts of several calls together, with the details that any of them gives."""
    total: Fields = {}
    for usage in usages:
        for name, item in usage.items():
            total[name] = (
                _added([total.get(name, {}), item]) if isinstance(item, Mapping) else total.get(name, 0) + item
            )
    return total


def _openai(value: Any) -> Fields | None:
    """A chat completion, or a result of the Responses API."""
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
    """A result of the Responses API: what a search of files found are the sources."""
    calls = [item for item in value.output if item.type == "function_call"]
    searches = [item for item in value.output if item.type == "file_search_call"]
    fields: Fields = {"answer": value.output_text, "usage": value.usage, "model": value.model}
    fields["tool_calls"] = [{"name": call.name, "arguments": call.arguments} for call in calls]
    if any(search.results is not None for search in searches):
        fields["sources"] = [result for search in searches for result in search.results or ()]
    return fields


_READERS = {"langchain_core": _message, "llama_index": _query, "haystack": _haystack, "openai": _openai}
