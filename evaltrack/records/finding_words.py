"""Turns pydantic's errors on a file's fields into messages that say what is wrong and how to fix it; reads ids."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic_core import ErrorDetails

from evaltrack.errors import printable
from evaltrack.records.base import as_key, count, first_of, verb
from evaltrack.records.config import did_you_mean
from evaltrack.records.json_text import kind_of

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


ID_NAME = re.compile(r"(?i)(?:^|[_-])id$|^q(?:uestion)?id$")
"""A pattern for field names that may hold the id of a question."""


class RecordedLineError(ValueError):
    """A line that does not say which question it belongs to."""


def take_id(line: dict[str, Any], deed: str) -> str:
    """Remove the question's id from a line and return it.

    `deed` is the participle in the message, such as "answered".

    Raises:
        RecordedLineError: the line has no id.
    """
    if "id" not in line:
        near = next((name for name in line if ID_NAME.search(name)), "")
        meant = f"rename `{near}`" if near else f"name the question that was {deed}"
        raise RecordedLineError(f"`id` is missing; {meant}")
    key = as_key(line.pop("id"))
    if not isinstance(key, str) or not key:
        raise RecordedLineError(id_words(key))
    return key
