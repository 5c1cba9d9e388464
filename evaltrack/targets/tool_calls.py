"""Tool calls as targets return them: names, our own fields, or the form of OpenAI's API or of LangChain.

OpenAI's arguments are JSON in a text; arguments that are no JSON object, as models write them now and then, are kept as
a text under `UNREAD`.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

from pydantic_core import from_json

from evaltrack.records import ToolCall
from evaltrack.records.base import storable
from evaltrack.targets.response_fields import InvalidResponseError, take_fields
from evaltrack.targets.usage import plain

UNREAD = "unread"
"""The name under which arguments of a tool stand that are no JSON object."""

MAX_DEPTH = 100
"""Objects and lists within each other in the arguments of a tool; readers of JSON give up at 200, rows included."""

MAX_BITS = 4096
"""Of a whole number there: some 1,200 digits, where Python stops writing them at 4,300."""

FUNCTION_KEYS = tuple(ToolCall.model_fields)
TOOL_KEYS = (*FUNCTION_KEYS, "id", "type", "index", "function", "args")


def as_tool_call(place: int, value: object, unread: list[str]) -> object:
    """A tool call in our own form, to be validated; the names of fields that are not read are added to `unread`.

    Raises:
        InvalidResponseError: its function is no object.
    """
    if isinstance(value, str):
        return {"name": value}
    fields = plain(value)
    if not isinstance(fields, Mapping):
        return fields
    within = f"tool_calls.{place}"
    fields = take_fields(fields, TOOL_KEYS, within, unread)
    function = plain(fields.get("function"))
    if function is not None:
        if not isinstance(function, Mapping):
            raise InvalidResponseError(f"{within}.function: is {type(function).__name__}; return name and arguments")
        fields = take_fields(function, (*FUNCTION_KEYS, "args"), f"{within}.function", unread)
    arguments = fields.get("arguments", fields.get("args"))
    call = {"name": fields["name"]} if "name" in fields else {}
    if arguments is not None:
        call["arguments"] = _arguments(arguments) if isinstance(arguments, str) else arguments
    return call


def check_storable(value: object, place: str, depth: int = 0) -> None:
    """Refuse arguments that JSON cannot hold, or not give back: a row with them could not be kept."""
    if depth > MAX_DEPTH:
        raise InvalidResponseError(f"{place}: is nested deeper than {MAX_DEPTH}")
    if isinstance(value, Mapping):
        for name, item in value.items():
            check_storable(name, place, depth + 1)
            check_storable(item, place, depth + 1)
    elif isinstance(value, list | tuple):
        for item in value:
            check_storable(item, place, depth + 1)
    elif what := _unstorable(value):
        raise InvalidResponseError(f"{place}: holds {what}")


def _unstorable(value: object) -> str:
    """What JSON cannot hold or not give back, where a single value is that."""
    if isinstance(value, str):
        try:
            storable(value.replace("\0", ""))
        except ValueError as error:
            return str(error).removeprefix("holds ")
    elif isinstance(value, int):
        return f"a whole number of more than {MAX_BITS:,} bits" if value.bit_length() > MAX_BITS else ""
    elif isinstance(value, float):
        return "" if isfinite(value) else "a number that is not finite"
    elif value is not None:
        return f"{type(value).__name__}, which is not JSON"
    return ""


def _arguments(text: str) -> dict[str, Any]:
    try:
        read = from_json(text or "{}", allow_inf_nan=False)
    except ValueError:
        read = None
    return read if isinstance(read, dict) else {UNREAD: text}
