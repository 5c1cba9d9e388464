"""JSON that people write: read to the letter, or refused with what is wrong, where, and what to write instead."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from pydantic_core import from_json, to_json

from evaltrack.records.base import without_halves

FAULTS = {
    "EOF while parsing an object": ("it ends inside an object", "close it with `}`"),
    "EOF while parsing a list": ("it ends inside a list", "close it with `]`"),
    "EOF while parsing a string": ("it ends inside a text", 'close it with `"`'),
    "EOF while parsing a value": ("it ends before a value", "write one"),
    "expected `:`": ("a key has no `:` after it", 'write `"key": value`'),
    "expected `,` or `]`": ("a `,` or `]` is missing", "write it"),
    "expected `,` or `}`": ("a `,` or `}` is missing", "write it"),
    "expected ident": ("a word is not in quotes", "write texts in double quotes"),
    "expected value": ("there is no value", "write a text in quotes, a number, true, false or null"),
    "invalid escape": ("a text holds an unknown escape", "write `\\\\` for a backslash"),
    "invalid number": ("a number is not written as in JSON", "write it like 12 or 0.5"),
    "number out of range": ("a number is too large", "write a smaller one"),
    "control character (\\u0000-\\u001F) found while parsing a string": (
        "a text holds a line break or another control character",
        "write `\\n` for a line break, `\\t` for a tab",
    ),
    "key must be a string": ("a key is not in double quotes", 'write `"key": value`'),
    "lone leading surrogate in hex escape": ("a `\\u` escape is half of a pair", "write both halves"),
    "unexpected end of hex escape": ("a `\\u` escape is cut off or half of a pair", "write it whole"),
    "trailing comma": ("a comma stands before the end", "remove it"),
    "trailing characters": ("something follows the value", "remove it"),
    "recursion limit exceeded": ("it is nested too deep", "make it flatter"),
}
"""What the parser says, in words, and the cure."""

MAX_DEPTH = 100
"""Objects and lists within each other in what a row holds; the parser gives up at 200."""

GZIP = b"\x1f\x8b"
"""What a file begins with that gzip compressed."""

KEY_ENDS = re.compile(rb':(?<=["\s]:)')
"""What each key ends with; texts may hold some too."""


def finite_json(data: Any) -> str:
    """The JSON of `data`, in less than half the time that `json.dumps` takes.

    Raises:
        ValueError: a number in it is none, or infinite.
    """
    text = to_json(data).decode()
    if "NaN" in text or "Infinity" in text:
        json.dumps(data, allow_nan=False)  # which tells a number from a word
    return text


class InvalidJsonError(ValueError):
    """A text is no JSON, or says one thing twice; the message names the place and the cure."""


def other_encoding(start: bytes) -> str:
    """What the first bytes of a file show it to be instead of text in UTF-8, with the cure; empty where they do not.

    As in ``is UTF-16; save it as UTF-8``.
    """
    if start.startswith(GZIP):
        return "is compressed (gzip); unpack it"
    wide = start.startswith((b"\xff\xfe", b"\xfe\xff")) or start[:2] in (b"{\0", b"[\0", b"\0{", b"\0[")
    return "is UTF-16; save it as UTF-8" if wide else ""


def spread_kind(first: bytes, second: bytes) -> str:
    """What goes on over several lines at the start of a file that has one object a line; empty where nothing does.

    Args:
        first: Its first line that is not blank.
        second: The next of these; where an object begins there, the first line is only cut off.
    """
    kind = open_kind(first)
    return "" if not second or (kind == "an object" and second.startswith(b"{")) else kind


def open_kind(line: bytes) -> str:
    """What a line begins and does not end, `an array` or `an object`; empty where it has another fault or none."""
    try:
        from_json(line)
    except ValueError as error:
        ends_early = str(error).startswith("EOF while parsing") and "a string" not in str(error)
        return {b"[": "an array", b"{": "an object"}.get(line[:1], "") if ends_early else ""
    return ""


def parsed(raw: bytes, *, allow_nan: bool = False, read: Callable[..., Any] = from_json) -> Any:
    """The JSON value in `raw`; with `allow_nan` also where a tool wrote numbers that are not finite.

    `read` may be `from_program`.

    Raises:
        InvalidJsonError: it is none.
    """
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        raise InvalidJsonError(f"is not valid UTF-8 at byte {error.start + 1}; save the file as UTF-8") from None
    if b"\0" in raw:
        raise InvalidJsonError("holds a NUL byte; remove it")
    try:
        return read(raw, allow_inf_nan=allow_nan)
    except ValueError as error:
        raise InvalidJsonError(_words(str(error), is_line=b"\n" not in raw)) from None


def from_program(raw: bytes, *, allow_inf_nan: bool = True) -> Any:
    """The JSON value that a program wrote, with the replacement character for each half of a surrogate pair.

    Raises:
        ValueError: it is none.
    """
    try:
        return from_json(raw, allow_inf_nan=allow_inf_nan)
    except ValueError as error:
        if "surrogate" not in str(error) and "hex escape" not in str(error):
            raise
        with suppress(ValueError, RecursionError):
            text = without_halves(json.dumps(json.loads(raw), ensure_ascii=False))
            return from_json(text, allow_inf_nan=allow_inf_nan)
        raise


def _words(message: str, *, is_line: bool) -> str:
    """``is not JSON: a comma stands before the end at column 12; remove it``; of several lines the line too."""
    fault, _, place = message.rpartition(" at line ")
    what, cure = FAULTS.get(fault, (fault, "correct it"))
    here = f"line {place}" if not is_line else place.partition(" ")[2]
    ends_early = is_line and fault.startswith("EOF")
    return f"is not JSON: {what} at {here}; {cure}{' on the same line' if ends_early else ''}"


def refuse_repeats(raw: bytes, value: object) -> None:
    """Refuse JSON with a key that stands twice in one object: which of them counts would be a guess.

    `value` is what was read from it, whose keys are counted: only texts that may hold more are read a second time.

    Raises:
        InvalidJsonError: there is one.
    """
    if may_repeat(raw, num_keys(value)):
        no_repeats(raw)


def may_repeat(raw: bytes, keys: int) -> bool:
    """Whether a text may hold more keys than were read from it."""
    return raw.count(b":") != keys and len(KEY_ENDS.findall(raw)) != keys


def num_keys(value: object) -> int:
    """The keys of all objects in a JSON value."""
    if isinstance(value, dict):
        return len(value) + sum(num_keys(each) for each in value.values() if isinstance(each, dict | list))
    return sum(num_keys(each) for each in value if isinstance(each, dict | list)) if isinstance(value, list) else 0


def no_repeats(text: str | bytes) -> None:
    """Refuse JSON with a key that stands twice in one object.

    Raises:
        InvalidJsonError: there is one; the message names it.
    """
    repeats = Repeats()
    json.loads(text, object_pairs_hook=repeats)
    if error := repeats.take():
        raise error


class Repeats:
    """Makes objects of pairs, and notes the first key that stands twice in one of them."""

    def __init__(self) -> None:
        self._error: InvalidJsonError | None = None

    def __call__(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """The object of these names and values; of a name that repeats the last value."""
        fields: dict[str, Any] = {}
        for name, value in pairs:
            if name in fields and self._error is None:
                self._error = InvalidJsonError(f"`{name[:80]}` stands there twice; keep one of them")
            fields[name] = value
        return fields

    def take(self) -> InvalidJsonError | None:
        """What was noted since the last time."""
        error, self._error = self._error, None
        return error


def too_deep(value: object, depth: int = 0) -> bool:
    """Whether objects and lists nest so deep that a row which holds them, of some levels more, could not be read."""
    if not value or not isinstance(value, dict | list):
        return False
    items = value.values() if isinstance(value, dict) else value
    return depth >= MAX_DEPTH or any(too_deep(item, depth + 1) for item in items)


def kind_of(value: object) -> str:
    """What a JSON value is, in words; of another value its type."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "a number"
    kinds = {list: "an array", tuple: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return "an object" if isinstance(value, dict) else kinds.get(type(value), type(value).__name__)
