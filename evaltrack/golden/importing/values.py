"""Values of foreign files as golden lines hold them: JSON values, lists of ids, texts."""

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

MAX_DEPTH, MAX_VALUES = 50, 200_000
"""How deep a value may be nested, and how many values one may hold: aliases of YAML repeat what they name."""

TEXT_KEYS = (
    *("question", "query", "user_input", "input", "prompt", "text"),
    *("answer", "expected_output", "output", "content"),
)
"""Keys under which tools store the text of an input or an output, where it is an object."""

ID_KEYS = ("id", "_id", "chunk_id", "doc_id", "name")
"""Keys of an object that is given for a chunk, a document or a tool."""

_SIDE_BY_SIDE = re.compile(r"""(['"])\s+\1""")
"""Two texts without a comma, as NumPy prints an array, which Python would join to one."""


def shown(name: object) -> str:
    """A name out of a file, fit for one line of a message: printable and short."""
    text = str(name)
    return printable(f"{text[:60]}..." if len(text) > 60 else text)


def plain(value: object, depth: int = 0, seen: list[int] | None = None) -> Any:
    """A value as JSON has it: numbers that are not finite are null, dates and times are text.

    Raises:
        ValueError: it is nested too deep, too large, or holds bytes or text that cannot be stored.
    """
    seen = [0] if seen is None else seen
    seen[0] += 1
    if depth > MAX_DEPTH or seen[0] > MAX_VALUES:
        raise ValueError(
            f"is nested deeper than {MAX_DEPTH}, or holds more than {MAX_VALUES:,} values; make it smaller"
        )
    if isinstance(value, Decimal):
        value = int(value) if value.is_finite() and value == value.to_integral_value() else float(value)
    if value is None or isinstance(value, str | bool | int | float):
        return None if isinstance(value, float) and not isfinite(value) else storable(value)
    if isinstance(value, bytes):
        raise ValueError("holds bytes, which are no value of JSON; write them as text")  # noqa: TRY004 - it is data
    if isinstance(value, Mapping):
        return {str(key): plain(item, depth + 1, seen) for key, item in value.items()}
    return [plain(item, depth + 1, seen) for item in value] if isinstance(value, Iterable) else str(value)


def is_empty(value: object) -> bool:
    """True if a cell or field says nothing: missing, blank, or not a number."""
    return value is None or value != value or (isinstance(value, str) and not value.strip())  # noqa: PLR0124 - NaN


def cell(value: Any, begins: tuple[str, ...] = ("[", "{"), *, strict: bool = True) -> Any:
    """The list or object that a cell holds as text, of JSON or as Python prints it; any other value as it is.

    Raises:
        ValueError: a text begins as a list or object does, and is none; unless `strict` is off, where it stays a text.
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
    raise ValueError(f"begins with `{text[:1]}` but is no list or object of JSON: {shown(text)}")


def named(value: Mapping[str, Any]) -> Any:
    """The name in an object that is given for a chunk, a document or a tool; None where that cannot be told."""
    return next((value[key] for key in ID_KEYS if not is_empty(value.get(key))), None)


def identifier(value: object) -> str | int:
    """An id, alone or in an object; spreadsheets hold whole numbers as `7.0`.

    Raises:
        ValueError: it is no text and no whole number.
    """
    if isinstance(value, Mapping):
        value = value if is_empty(named(value)) else named(value)
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError(f"`{shown(value)}` is no id; write a text or a whole number, or name it `id`")


def identifiers(value: object, separator: str) -> list[str | int]:
    """The ids in a list, in a text that is a list of JSON or Python, or in a text with separators.

    Raises:
        ValueError: one of them is no id.
    """
    items = cell(value)
    if isinstance(items, str) and separator:
        items = items.split(separator)
    return [identifier(item) for item in (items if isinstance(items, list) else [items]) if not is_empty(item)]


def text_in(value: object) -> tuple[str, dict[str, Any]]:
    """The text of an input or output, and what else the value holds.

    A text is itself. Of an object it is the value under one of the usual keys, or its only value; of a list of chat
    messages the last one of the user, and the messages before it are `history` where these are texts; of any other list
    its only item.

    Raises:
        ValueError: no text can be told.
    """
    match value:
        case str() | int() | float():
            return str(value), {}
        case [{"role": _}, *_] if all(isinstance(each, Mapping) for each in value):
            return _text_of_messages(value)
        case [only]:
            return text_in(only)
        case Mapping():
            usual = [name for name in TEXT_KEYS if not is_empty(value.get(name))]
            names = usual or (list(value) if len(value) == 1 else [])
            if not names:
                keys = ", ".join(map(shown, list(value)[:9]))
                raise ValueError(f"is an object with the keys {keys}; name the one that holds the text")
            text, rest = text_in(value[names[0]])
            return text, {**{str(name): item for name, item in value.items() if name != names[0]}, **rest}
    raise ValueError(f"is {kind_of(value)}; write a text")


def _text_of_messages(messages: Sequence[Any]) -> tuple[str, dict[str, Any]]:
    last = max((at for at, each in enumerate(messages) if each.get("role") == "user"), default=len(messages) - 1)
    text, rest = text_in(messages[last].get("content"))
    if len(messages) > 1:
        before = turns(messages[:-1]) if last == len(messages) - 1 and messages[last]["role"] == "user" else None
        rest = {**rest, **({"messages": messages} if before is None else {"history": before})}
    return text, rest


def turns(messages: object) -> list[dict[str, Any]] | None:
    """Messages as a `history`; None where one of them is more than the text of a role."""
    with suppress(ValidationError):
        if isinstance(messages, list) and all(isinstance(each, Mapping) for each in messages):
            said = [{name: item for name, item in each.items() if item} for each in messages]
            return [Turn.model_validate(each).model_dump() for each in said]
    return None
