"""Converts cells of another tool's file to values of a golden question: JSON values, lists of ids, texts."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from math import isfinite
from typing import Any

from pydantic import ValidationError
from pydantic_core import from_json

from evaltrack.errors import printable
from evaltrack.records.base import storable
from evaltrack.records.json_text import kind_of
from evaltrack.records.question import Turn

TEXT_KEYS = (
    *("question", "messages", "query", "user_input", "input", "prompt", "text"),
    *("answer", "expected_output", "output", "content"),
)
"""Usual keys of the text in an object that tools store for an input or output."""

ID_KEYS = ("id", "_id", "chunk_id", "doc_id", "name")
"""Usual keys of the id in an object that tools store for a chunk, a document or a tool."""

_SIDE_BY_SIDE = re.compile(r"""(['"])\s+\1""")
"""Matches two texts without a comma, as NumPy prints an array; Python would join them."""


def shown(name: object) -> str:
    """Return a foreign name as printable, short text for one line of a message."""
    text = str(name)
    return printable(f"{text[:60]}..." if len(text) > 60 else text)


def plain(value: object) -> Any:
    """Return a value as JSON data: numbers that are not finite become None, dates and times become text.

    Raises:
        ValueError: it holds bytes or text that cannot be stored.
    """
    if isinstance(value, Decimal):
        value = int(value) if value.is_finite() and value == value.to_integral_value() else float(value)
    if value is None or isinstance(value, str | bool | int | float):
        return None if isinstance(value, float) and not isfinite(value) else storable(value)
    if isinstance(value, bytes):
        raise ValueError("holds bytes, which are no value of JSON; write them as text")  # noqa: TRY004 - it is data
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, Iterable) else str(value)


def is_empty(value: object) -> bool:
    """Return True if a cell or field has no content: missing, blank, or NaN."""
    return value is None or value != value or (isinstance(value, str) and not value.strip())  # noqa: PLR0124 - NaN


def cell(value: Any, begins: tuple[str, ...] = ("[", "{"), *, strict: bool = True) -> Any:
    """Return the list or object in a cell's text (JSON, or as Python prints it); other values unchanged.

    Raises:
        ValueError: a text begins like a list or object but is none. With `strict` off it is returned unchanged.
    """
    text = value.strip() if isinstance(value, str) else None
    if text is None or not text.startswith(begins):
        return value
    with suppress(ValueError):
        return from_json(text, allow_inf_nan=False)
    if not _SIDE_BY_SIDE.search(text):
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError):
            return from_json(json.dumps(plain(ast.literal_eval(text))))
    if not strict:
        return value
    raise ValueError(f"begins with `{text[:1]}` but is not a JSON list or object: {shown(text)}")


def identifier(value: object) -> str | int:
    """Return an id, given alone or in an object. Spreadsheets store whole numbers as `7.0`.

    Raises:
        ValueError: it is neither text nor a whole number.
    """
    if isinstance(value, Mapping):
        value = next((value[key] for key in ID_KEYS if not is_empty(value.get(key))), value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError(
        f"`{shown(value)}` is not an id; write a string or a whole number, or name its key: `fields=FIELD=COLUMN[].KEY`"
    )


def identifiers(value: object, separator: str) -> list[str | int]:
    """Return the ids in a list, in a text that is a list of JSON or Python, or in a text with separators.

    Raises:
        ValueError: one of them is no id.
    """
    items = cell(value)
    if isinstance(items, str) and separator:
        items = items.split(separator)
    return [identifier(item) for item in (items if isinstance(items, list) else [items]) if not is_empty(item)]


def text_in(value: object) -> tuple[str, dict[str, Any]]:
    """Return the text of an input or output, and the other content of the value.

    - Text is returned unchanged.
    - Of an object: the value under one of the usual keys, or its only text or value.
    - Of chat messages: the user's last one. The earlier ones are `history` if they are texts.
    - Of the parts of a message: all texts.
    - Of any other list: its only item.

    Raises:
        ValueError: the text is ambiguous or missing.
    """
    match value:
        case str() | int() | float():
            return str(value), {}
        case [{"role": _}, *_] if all(isinstance(each, Mapping) for each in value):
            return _text_of_messages(value)
        case list() if len(value) > 1 and all(isinstance(each, Mapping) and "type" in each for each in value):
            return "".join(part["text"] for part in value if isinstance(part.get("text"), str)), {}
        case [only]:
            return text_in(only)
        case Mapping():
            usual = [name for name in TEXT_KEYS if not is_empty(value.get(name))]
            texts = [name for name, item in value.items() if isinstance(item, str)]
            names = usual or (texts if len(texts) == 1 else list(value) if len(value) == 1 else [])
            if not names:
                keys = ", ".join(map(shown, list(value)[:9]))
                raise ValueError(f"is an object with the keys {keys}; name the one that holds the text")
            text, rest = text_in(value[names[0]])
            return text, {**{str(name): item for name, item in value.items() if name != names[0]}, **rest}
    raise ValueError(f"is {kind_of(value)}; write a string")


def _text_of_messages(messages: Sequence[Any]) -> tuple[str, dict[str, Any]]:
    roles = [each.get("role") for each in messages]
    last = max((at for at, role in enumerate(roles) if role in ("user", "human")), default=len(messages) - 1)
    text, rest = text_in(messages[last].get("content"))
    if len(messages) > 1:
        before = turns(messages[:-1]) if last == len(messages) - 1 and messages[last]["role"] == "user" else None
        rest = {**rest, **({"messages": messages} if before is None else {"history": before})}
    return text, rest


def turns(messages: object) -> list[dict[str, Any]] | None:
    """Return messages as a `history`; None if a message holds more than a role and text."""
    with suppress(ValidationError):
        if isinstance(messages, list) and all(isinstance(each, Mapping) for each in messages):
            filled = [{name: item for name, item in each.items() if item} for each in messages]
            return [Turn.model_validate(each).model_dump() for each in filled]
    return None
