"""Reads and writes JSON; turns faults of a JSON text and of its fields into messages that name place and fix."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic_core import ErrorDetails, from_json, to_json

from evaltrack.errors import printable
from evaltrack.records.base import as_key, count, first_of, verb, without_halves
from evaltrack.records.config import did_you_mean

GZIP = b"\x1f\x8b"
"""The first bytes of a file that gzip compressed."""


def finite_json(data: Any) -> str:
    """Return the JSON of `data`, in less than half the time of `json.dumps`.

    Raises:
        ValueError: it holds NaN or infinity.
    """
    text = to_json(data).decode()
    if "NaN" in text or "Infinity" in text:
        json.dumps(data, allow_nan=False)  # tells a number from a text
    return text


class InvalidJsonError(ValueError):
    """A text that is no JSON or holds a key twice. The message gives the place and the fix."""


def other_encoding(start: bytes) -> str:
    """Return the message on a file that is not UTF-8, from its first bytes; empty if they look like UTF-8.

    For example ``is UTF-16; save it as UTF-8``.
    """
    if start.startswith(GZIP):
        return "is compressed (gzip); unpack it"
    wide = start.startswith((b"\xff\xfe", b"\xfe\xff")) or start[:2] in (b"{\0", b"[\0", b"\0{", b"\0[")
    return "is UTF-16; save it as UTF-8" if wide else ""


def parsed(
    raw: bytes, *, allow_nan: bool = False, may_repeat: bool = False, read: Callable[..., Any] = from_json
) -> Any:
    """Return the JSON value in `raw`; `read` may be `from_program`.

    With `allow_nan`, numbers may be NaN or infinite. With `may_repeat`, a key may occur twice in an object.

    Raises:
        InvalidJsonError: it is no JSON, or a key is repeated.
    """
    try:
        raw.decode()
    except UnicodeDecodeError as error:
        raise InvalidJsonError(f"is not valid UTF-8 at byte {error.start + 1}; save the file as UTF-8") from None
    try:
        value = read(raw, allow_inf_nan=allow_nan)
    except ValueError as error:
        raise InvalidJsonError(_words(str(error), is_line=b"\n" not in raw)) from None
    if not may_repeat:
        no_repeats(raw)
    return value


def from_program(raw: bytes, *, allow_inf_nan: bool = True) -> Any:
    """Return the JSON value that a program wrote, with the replacement character for each half of a surrogate pair.

    Raises:
        ValueError: it is no JSON.
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
    """Return ``invalid JSON: trailing comma at column 12; correct it``; of several lines with the line."""
    fault, _, place = message.rpartition(" at line ")
    here = place.partition(" ")[2] if is_line else f"line {place}"
    cure = "complete it on the same line" if is_line and fault.startswith("EOF") else "correct it"
    return f"invalid JSON: {fault} at {here}; {cure}"


def no_repeats(text: str | bytes) -> None:
    """Refuse JSON with a key that occurs twice in one object, because either value could be meant.

    Raises:
        InvalidJsonError: a key is repeated; the message names it.
    """
    json.loads(text, object_pairs_hook=_fields)


def _fields(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        name, _ = Counter(name for name, _ in pairs).most_common(1)[0]
        raise InvalidJsonError(f"`{name[:80]}` is given twice; keep one of them")
    return fields


def kind_of(value: object) -> str:
    """Return the kind of a JSON value in words; the type's name for other values."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return "a number"
    kinds = {list: "an array", tuple: "an array", str: "a string", bool: "a boolean", type(None): "null"}
    return "an object" if isinstance(value, dict) else kinds.get(type(value), type(value).__name__)


EXPECTED = {
    "string_type": "a string",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "dict_type": "an object",
    "mapping_type": "an object",
    "model_type": "an object",
    "model_attributes_type": "an object",
    "tuple_type": "a list",
    "list_type": "a list",
}
"""The expected types in words, by pydantic's type of error."""


WORDS = {
    "missing": "is missing; write it",
    "string_too_short": "is empty; write some text",
    "string_pattern_mismatch": "is empty; write some text",
    "too_short": "is empty; write at least {min_length:,}",
    "string_too_long": "is too long; {verb} at most {max_length:,} characters",
    "too_long": "has {actual_length:,} entries; {verb} at most {max_length:,}",
    "finite_number": "is not a finite number; write one, or leave it out",
    "greater_than_equal": "is too small; {verb} at least {ge:,.16g}",
    "less_than_equal": "is too large; {verb} at most {le:,.16g}",
}
"""Other faults and their fixes, by pydantic's type of error. Names in braces are from the error's context."""


def finding_words(detail: ErrorDetails, fields: Sequence[str] = (), *, verb: str = "write") -> str:
    """Return one validation error as ```field` is wrong; how to fix it``, without the value.

    Args:
        detail: The validation error.
        fields: The known fields at its place.
        verb: The verb before the expected type.
    """
    place, kind = ".".join(map(str, detail["loc"])), detail["type"]
    if kind == "extra_forbidden":
        return unknown_field(place, fields)
    what = _what(kind, detail.get("ctx") or {}, detail["input"], verb)
    message = what or detail["msg"].removeprefix("Value error, ")
    if not place:
        return message
    if message.startswith("holds "):
        return f"`{place}` {message}; remove it"
    return f"`{place}` {message}" if what else f"`{place}`: {message}"


def _what(kind: str, context: dict[str, Any], value: object, verb: str) -> str:
    """Return the fault and its fix; empty if the check's own message says more."""
    if kind in EXPECTED:
        has = "has a fraction" if kind == "int_from_float" else f"is {kind_of(value)}"
        return f"{has}; {verb} {EXPECTED[kind]}"
    if kind == "literal_error":
        return f"is not one of {context['expected'].replace(' or ', ', ').replace(chr(39), '')}; write one of them"
    return WORDS[kind].format(verb=verb, **context) if kind in WORDS else ""


def id_words(value: object) -> str:
    """Return the message on a value that is no id of a question."""
    what = f"`{value!r}`, a decimal" if isinstance(value, float) else "empty" if value == "" else kind_of(value)
    return f"`id` is {what}; write a whole number or a string"


def unknown_field(place: str, fields: Sequence[str]) -> str:
    """Return the message on an unknown field, with the most similar name or all known ones."""
    return f"unknown field `{place}`; {did_you_mean(place.rpartition('.')[2], fields) if fields else 'remove it'}"


EXAMPLES = 3


def strangers_note(path: Path, what: str, ids: Sequence[str]) -> str:
    """Return the message on lines of other questions, or "" if there are none.

    For example ``answers.jsonl: 2 responses match no question in the golden set and were ignored: `21`, `22```.

    Args:
        path: The recording.
        what: A noun for its entries, in the singular.
        ids: The ids of the other questions.
    """
    if not ids:
        return ""
    first = first_of([f"`{key[:60]}`" for key in ids[:EXAMPLES]], EXAMPLES, len(ids))
    none = f"{verb(len(ids), 'matches', 'match')} no question in the golden set and {verb(len(ids), 'was', 'were')}"
    return printable(f"{path}: {count(len(ids), what)} {none} ignored: {first}")


class RecordedLineError(ValueError):
    """A line that does not say which question it belongs to."""


def take_id(line: dict[str, Any], deed: str) -> str:
    """Remove the question's id from a line and return it.

    `deed` is the participle in the message, such as "answered".

    Raises:
        RecordedLineError: the line has no id.
    """
    if "id" not in line:
        raise RecordedLineError(f"`id` is missing; name the question that was {deed}")
    key = as_key(line.pop("id"))
    if not isinstance(key, str) or not key:
        raise RecordedLineError(id_words(key))
    return key
