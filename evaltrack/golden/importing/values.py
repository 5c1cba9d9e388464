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

from evaltrack.errors import printable
from evaltrack.records import Role

MAX_DEPTH, MAX_VALUES = 50, 200_000
"""How deep a value may be nested, and how many values one may hold: aliases of YAML repeat what they name."""

TEXT_KEYS = (
    *("question", "query", "user_input", "input", "prompt", "text"),
    *("answer", "expected_output", "output", "content"),
)
"""Keys under which tools store the text of an input or an output, where it is an object."""

ID_KEYS = ("id", "_id", "chunk_id", "doc_id", "name")
"""Keys of an object that stands for a chunk, a document or a tool."""

_SIDE_BY_SIDE = re.compile(r"""(['"])\s+\1""")
"""Two texts without a comma, which Python would join to one."""


def shown(name: object) -> str:
    """A name out of a file, fit for one line of a message: printable and short."""
    text = str(name)
    return printable(f"{text[:60]}..." if len(text) > 60 else text)


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
    items = in_cell(value)
    if isinstance(items, str):
        items = items.split(separator) if separator else [items]
    elif isinstance(items, int | float):
        items = [items]
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


def in_cell(value: Any) -> Any:
    """A list or object that a cell holds as text; any other value as it is.

    Raises:
        ValueError: a text begins as a list or object does, and is none.
    """
    return parsed(value.strip()) if isinstance(value, str) and value.lstrip().startswith(("[", "{")) else value


def opened(value: Any) -> Any:
    """As `in_cell`, but a text that is no list or object stays a text."""
    try:
        return in_cell(value)
    except ValueError:
        return value


def parsed(text: str) -> Any:
    """The list or object that a cell holds as text, of JSON or as Python prints it.

    Raises:
        ValueError: it is neither.
    """
    try:
        return from_json(text, allow_inf_nan=False)
    except ValueError:
        pass
    if _SIDE_BY_SIDE.search(text):
        raise ValueError("holds an array as NumPy prints it, without commas; save the column as JSON")
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        raise ValueError(f"begins with `{text[0]}` but is no list or object of JSON: {shown(text)}") from None


def text_in(value: object) -> tuple[str, dict[str, Any]]:
    """The text of an input or output, and what else the value holds.

    A text is itself. Of an object it is the value under one of the usual keys, or its only value; of a list of chat
    messages the last one of the user, and the messages before it are `history` where these are texts; of any other list
    its only item.

    Raises:
        ValueError: no text can be told.
    """
    if isinstance(value, str):
        return value, {}
    if isinstance(value, Mapping):
        return _text_of_object(value)
    if isinstance(value, list) and value and all(isinstance(item, Mapping) and "role" in item for item in value):
        return _text_of_messages(value)
    if isinstance(value, list) and len(value) == 1:
        return text_in(value[0])
    if isinstance(value, int | float):
        return str(value), {}
    raise ValueError(f"holds {type(value).__name__}; write a text")


def _text_of_object(value: Mapping[Any, Any]) -> tuple[str, dict[str, Any]]:
    names = [name for name in TEXT_KEYS if not is_empty(value.get(name))] or (list(value) if len(value) == 1 else [])
    if not names:
        keys = ", ".join(map(shown, list(value)[:9]))
        raise ValueError(f"is an object with the keys {keys}; name the one that holds the text")
    text, rest = text_in(value[names[0]])
    return text, {**{str(name): item for name, item in value.items() if name != names[0]}, **rest}


def _text_of_messages(messages: list[Mapping[str, Any]]) -> tuple[str, dict[str, Any]]:
    last = max((at for at, each in enumerate(messages) if each.get("role") == "user"), default=len(messages) - 1)
    text, rest = text_in(messages[last].get("content"))
    before = messages[:-1]
    if before and messages[-1].get("role") == "user" and all(map(_is_turn, before)):
        history = [{"role": each["role"], "content": each["content"]} for each in before]
        return text, {"history": history, **rest}
    return text, {**({"messages": [dict(each) for each in messages]} if len(messages) > 1 else {}), **rest}


def _is_turn(message: Mapping[str, Any]) -> bool:
    """Whether a message is a text of a role, and no more."""
    content, rest = message.get("content"), message.keys() - {"role", "content"}
    is_text = isinstance(content, str) and bool(content.strip())
    return message["role"] in get_args(Role) and is_text and not any(map(message.get, rest))
