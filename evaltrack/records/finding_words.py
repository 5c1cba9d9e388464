"""What the validation of a file's field found, in words: what is wrong, and what to write instead."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from pydantic_core import ErrorDetails

from evaltrack.errors import printable
from evaltrack.records.amount import first_of
from evaltrack.records.base import as_key
from evaltrack.records.json_text import kind_of

EXPECTED = {
    "string_type": "a text",
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
"""What must stand in place of a value of another type."""


WORDS = {
    "missing": "is missing; write it",
    "string_too_short": "is empty; write some text",
    "string_pattern_mismatch": "is empty; write some text",
    "too_short": "is empty; write at least {min_length:,}",
    "string_too_long": "is too long; {verb} at most {max_length:,} characters",
    "too_long": "has {actual_length:,} entries; {verb} at most {max_length:,}",
    "finite_number": "is no finite number; write one, or leave it out",
    "greater_than_equal": "is too small; {verb} at least {ge:,.16g}",
    "less_than_equal": "is too large; {verb} at most {le:,.16g}",
}
"""What is wrong otherwise, and the cure; names are those of the context of a finding."""


SHORTEST = 3
"""Characters of a name from which on it says something that it stands within another one."""


def finding_words(detail: ErrorDetails, fields: Sequence[str] = (), *, verb: str = "write") -> str:
    """One finding as ```field` is wrong; what to do``, without the value.

    Args:
        detail: What the validation found.
        fields: The fields beside one that is unknown.
        verb: What stands before the type that a value must have.
    """
    place, kind = ".".join(map(str, detail["loc"])), detail["type"]
    if kind == "extra_forbidden":
        return unknown_field(place, fields)
    what = _what(kind, detail.get("ctx") or {}, detail["input"], verb)
    message = what or detail["msg"].removeprefix("Value error, ")
    if not place:
        return message
    if message.startswith("holds "):
        return f"`{place}` {message}; take it out"
    return f"`{place}` {message}" if what else f"`{place}`: {message}"


def _what(kind: str, context: dict[str, Any], value: object, verb: str) -> str:
    """What is wrong, and the cure; empty where the message of the check says it better."""
    if kind in EXPECTED:
        has = "has a fraction" if kind == "int_from_float" else f"is {kind_of(value)}"
        return f"{has}; {verb} {EXPECTED[kind]}"
    if kind == "literal_error":
        return f"is none of {context['expected'].replace(' or ', ', ').replace(chr(39), '')}; write one of them"
    return WORDS[kind].format(verb=verb, **context) if kind in WORDS else ""


def id_words(value: object) -> str:
    """What is wrong with a value that is no id of a question."""
    what = f"`{value!r}`, a decimal" if isinstance(value, float) else "empty" if value == "" else kind_of(value)
    return f"`id` is {what}; write a whole number or a text"


def unknown_field(place: str, fields: Sequence[str]) -> str:
    """That there is no such field, and the one or those that may be meant, or those that there are."""
    within, dot, name = place.rpartition(".")
    *others, last = [f"`{each}`" for each in near_names(name, fields)] or [""]
    meant = f"{', '.join(others)} or {last}" if others else last
    cure = f"did you mean {meant}?" if meant else f"known fields: {', '.join(fields)}" if fields else "take it out"
    return f"unknown field `{within}{dot}{name}`; {cure}"


def near_names(name: str, fields: Sequence[str]) -> list[str]:
    """The known names that hold another one, where several do; else the nearest one, or that which holds it."""
    holders = [each for each in fields if len(name) >= SHORTEST and name.lower() in each]
    if len(holders) > 1:
        return holders
    return get_close_matches(name, fields, n=1) or get_close_matches(name.lower(), fields, n=1) or holders


EXAMPLES = 3


def strangers_note(path: Path, what: str, ids: Sequence[str]) -> str:
    """``answers.jsonl: responses of no question in the golden set: 2 (`21`, `22`); …``; nothing where there are none.

    Args:
        path: The recording.
        what: What it holds, in the plural.
        ids: Those of other questions.
    """
    if not ids:
        return ""
    first = first_of([f"`{key[:60]}`" for key in ids[:EXAMPLES]], EXAMPLES, len(ids))
    those = f"{what} of no question in the golden set"
    return printable(f"{path}: {those}: {len(ids):,} ({first}); nothing was done with them")


ID_NAME = re.compile(r"(?i)(?:^|[_-])id$|^q(?:uestion)?id$")
"""Names of a field that may hold the id of a question."""


class RecordedLineError(ValueError):
    """A line does not say which question it is of."""


def take_id(line: dict[str, Any], deed: str) -> str:
    """Take the question's id out of a line; `deed` is what was done with the question.

    Raises:
        RecordedLineError: it has no id.
    """
    if "id" not in line:
        near = next((name for name in line if ID_NAME.search(name)), "")
        meant = f"rename `{near}`" if near else f"name the question that was {deed}"
        raise RecordedLineError(f"`id` is missing; {meant}")
    key = as_key(line.pop("id"))
    if not isinstance(key, str) or not key:
        raise RecordedLineError(id_words(key))
    return key
