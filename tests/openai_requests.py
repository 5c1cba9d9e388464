"""Reads requests to an OpenAI server: their texts, their mistakes, and a value for the schema that they ask for."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any

Json = dict[str, Any]


def format_of(request: Json) -> str:
    return str((request.get("response_format") or {}).get("type", "text"))


def text_of(request: Json, role: str | None = None) -> Iterator[str]:
    for message in request.get("messages", []):
        content = message.get("content") or ""
        if role in (None, message.get("role")):
            yield content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def ill_formed(request: Any) -> str | None:
    """The message with which OpenAI refuses a request; None if it does not."""
    if not isinstance(request, dict) or not request.get("model") or not request.get("messages"):
        return "you must provide a model and messages as JSON"
    kind = format_of(request)
    if kind == "json_object" and not any("json" in text.lower() for text in text_of(request)):
        return "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."
    wanted = request["response_format"].get("json_schema", {}) if kind == "json_schema" else {}
    if wanted.get("strict") and (why := _schema_problem(wanted.get("schema", {}))):
        return f"Invalid schema for response_format '{wanted.get('name')}': {why}"
    return None


def _schema_problem(schema: Json, place: tuple[str, ...] = ()) -> str | None:
    """Where a schema breaks the two rules of strict mode that are easily forgotten."""
    properties = schema.get("properties", {})
    if schema.get("type") == "object" and schema.get("additionalProperties") is not False:
        return f"In context={place}, 'additionalProperties' is required to be supplied and to be false."
    if missing := [name for name in properties if name not in schema.get("required", [])]:
        rule = "'required' is required to be supplied and to be an array including every key in properties."
        return f"In context={place}, {rule} Missing '{missing[0]}'."
    below = [((*place, "properties", name), child) for name, child in properties.items()]
    below += [((*place, "$defs", name), child) for name, child in schema.get("$defs", {}).items()]
    below += [((*place, "items"), schema["items"])] if "items" in schema else []
    below += [((*place, "anyOf", str(n)), child) for n, child in enumerate(schema.get("anyOf", []))]
    return next((why for where, child in below if (why := _schema_problem(child, where))), None)


def fill(schema: Json, key: str) -> Json:
    """A value for each property of a schema, drawn from a hash of `key`: numbers in [0, 1], empty lists."""
    return {name: _value(child["type"], _draw(f"{key}/{name}")) for name, child in schema["properties"].items()}


def _value(kind: str, draw: float) -> Any:
    text = f"Decided by a hash that begins with {draw:.6f}."
    return {"number": round(draw, 2), "boolean": draw < 0.5, "string": text, "array": []}[kind]


def _draw(key: str) -> float:
    """A number in [0, 1) that is always the same for a key."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:6]) / 2**48
