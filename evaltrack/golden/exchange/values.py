"""Values of foreign files as golden lines hold them: JSON values, lists of ids, texts."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from math import isfinite, isnan
from typing import Any, get_args

from pydantic_core import from_json

from evaltrack.golden.exchange.records import Line, shown
from evaltrack.records import Role

MAX_DEPTH, MAX_VALUES = 50, 200_000
"""How deep a value may be nested, and how many values one may hold: aliases of YAML repeat what they name."""

TEXT_KEYS = (
    "question",
    "query",
    "user_input",
    "input",
    "prompt",
    "text",
    "answer",
    "expected_output",
    "output",
    "content",
)
"""Keys under which tools store the text of an input or an output, where it is an object."""

ID_KEYS = ("id", "_id", "chunk_id", "doc_id", "name")
"""Keys of an object that stands for a chunk, a document or a tool."""

_NUMPY = re.compile(r"""(['"])\s+\1""")
"""Two texts side by side without a comma: an array of NumPy that was written as text."""


def plain(value: object) -> Any:
    """A value as JSON has it: numbers that are not finite are null, dates and times are text.

    Raises:
        ValueError: it is nested too deep, too large, or no value of JSON.
    """
    return _plain(value, 0, [0])


def _plain(value: object, depth: int, seen: list[int]) -> Any:
    seen[0] += 1
    if depth > MAX_DEPTH or seen[0] > MAX_VALUES:
        raise ValueError(
            f"is nested deeper than {MAX_DEPTH}, or holds more than {MAX_VALUES:,} values; make it smaller"
        )
    if value is None or isinstance(value, str | bool | int | float):
        return None if isinstance(value, float) and not isfinite(value) else value
    if isinstance(value, Decimal):
        return _plain(int(value) if value == value.to_integral_value() else float(value), depth, seen)
    if isinstance(value, date | datetime | time | timedelta):
        return str(value)
    if isinstance(value, Mapping):
        return {str(key): _plain(item, depth + 1, seen) for key, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return [_plain(item, depth + 1, seen) for item in value]
    raise ValueError(f"holds {type(value).__name__}, which is no value of JSON; leave it out, or write it as text")


def is_empty(value: object) -> bool:
    """Whether a cell or field says nothing: missing, blank, or not a number."""
    return (
        value is None or (isinstance(value, str) and not value.strip()) or (isinstance(value, float) and isnan(value))
    )


def has_no_text(value: object) -> bool:
    """Whether an input or output is an object without any value."""
    return isinstance(value, Mapping) and all(map(is_empty, value.values()))


def identifier(value: object) -> str | int:
    """An id; spreadsheets hold whole numbers as `7.0`.

    Raises:
        ValueError: it is no text and no whole number.
    """
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise ValueError(f"`{shown(value)}` is no id; write a text or a whole number")


def identifiers(value: object, separator: str, *, repeats: bool = False) -> list[str | int]:
    """The ids in a list, in a text that is a list of JSON or Python, or in a text with separators.

    Repeats are dropped, unless they count, as of tools that are called twice.

    Raises:
        ValueError: it is something else.
    """
    items = _items(value, separator)
    if not isinstance(items, list | tuple):
        raise ValueError(f"holds `{shown(items)}`; write a list of ids")  # noqa: TRY004 - it is data, not a caller's type
    ids = [identifier(_named(item)) for item in items if not is_empty(item)]
    return ids if repeats else list(dict.fromkeys(ids))


def _named(item: object) -> object:
    """The name of a tool call or a document that is given as an object."""
    if not isinstance(item, Mapping):
        return item
    named = [item[key] for key in ID_KEYS if not is_empty(item.get(key))]
    if not named:
        raise ValueError(f"holds an object without `id` or `name` (keys: {', '.join(map(shown, list(item)[:9]))})")
    return named[0]


def _items(value: object, separator: str) -> object:
    if not isinstance(value, str):
        return [value] if isinstance(value, int | float) else value
    text = value.strip()
    if text.startswith(("[", "{")):
        return parsed(text)
    return text.split(separator) if separator else [text]


def parsed(text: str) -> Any:
    """The list or object that a cell holds as text, of JSON or as Python prints it.

    Raises:
        ValueError: it is neither.
    """
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError:
        pass
    if _NUMPY.search(text):
        raise ValueError("holds an array as NumPy prints it, without commas; save the column as JSON")
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise ValueError(f"begins with `{text[0]}` but is no list or object of JSON: {shown(text)}") from None


def text_in(value: object, key: str = "") -> tuple[str, Line]:
    """The text of an input or output, and what else stands beside it.

    A text is itself. Of an object it is the value under `key`, under one of the usual keys, or its only value; of a
    list of chat messages the last one of the user, and what stands before it is `history` where these are texts; of any
    other list its only item.

    Raises:
        ValueError: no text can be told.
    """
    if isinstance(value, str):
        return value, {}
    if isinstance(value, Mapping):
        return _text_of_object(value, key)
    if isinstance(value, list) and value and all(isinstance(item, Mapping) and "role" in item for item in value):
        return _text_of_messages(value, key)
    if isinstance(value, list) and len(value) == 1:
        return text_in(value[0], key)
    if isinstance(value, int | float):
        return str(value), {}
    raise ValueError(f"holds {type(value).__name__}; write a text")


def _text_of_object(value: Mapping[Any, Any], key: str) -> tuple[str, Line]:
    names = [key] if key in value else [name for name in TEXT_KEYS if not is_empty(value.get(name))]
    if not names and len(value) == 1:
        names = list(value)
    if not names:
        keys = ", ".join(map(shown, list(value)[:9]))
        raise ValueError(f"is an object with the keys {keys}; name the one that holds the text")
    text, rest = text_in(value[names[0]], key)
    return text, {**{str(name): item for name, item in value.items() if name != names[0]}, **rest}


def _turns_before(messages: list[Mapping[str, Any]]) -> list[Line]:
    """The turns before the last message, which is the user's, where all of them are texts and no more; else none."""
    if messages[-1].get("role") != "user":
        return []
    roles, turns = get_args(Role), list[Line]()
    for each in messages[:-1]:
        content, rest = each.get("content"), each.keys() - {"role", "content"}
        if each["role"] not in roles or not isinstance(content, str) or not content.strip() or any(map(each.get, rest)):
            return []
        turns.append({"role": each["role"], "content": content})
    return turns


def _text_of_messages(messages: list[Mapping[str, Any]], key: str) -> tuple[str, Line]:
    last = max((at for at, each in enumerate(messages) if each.get("role") == "user"), default=len(messages) - 1)
    text, rest = text_in(messages[last].get("content"), key)
    if history := _turns_before(messages):
        return text, {"history": history} | rest
    return text, ({"messages": [dict(each) for each in messages]} if len(messages) > 1 else {}) | rest
