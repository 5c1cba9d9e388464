"""The fields of what a target returned: those that are read, and those that are only noted."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from evaltrack.records.response import TracePlace

CLOSE = 0.8
"""How alike (of 1) a name must be to a field that is missing for it to be taken for a slip of the pen."""


class InvalidResponseError(ValueError):
    """What a target returned cannot be read as a `Response`; `trace` is the one that it made meanwhile."""

    def __init__(self, text: str, trace: TracePlace | None = None) -> None:
        super().__init__(text)
        self.evaltrack_trace = trace


def take_fields(fields: Mapping[Any, Any], names: Collection[str], place: str, unread: list[str]) -> dict[str, Any]:
    """The fields called one of `names` that are not null; the names of the others are added to `unread`.

    `place` is where they stand, such as ``sources.0``; "" is the response itself.

    Raises:
        InvalidResponseError: a name is nearly that of a field which is missing, as `source` is of `sources`.
    """
    others = [name for name in fields if name not in names]
    missing = [name for name in names if name not in fields] if others else []
    for name in others:
        if meant := _slip(str(name), missing):
            raise InvalidResponseError(f"unknown field `{_at(place, name)}`; did you mean `{meant}`?")
        unread.append(_at(_without_numbers(place), name))
    return {name: fields[name] for name in names if fields.get(name) is not None}


def _slip(name: str, missing: list[str]) -> str | None:
    """The field that `name` was meant to be."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, missing, 1, CLOSE)), None)


def _at(place: str, name: object) -> str:
    return f"{place}.{name}" if place else str(name)


def _without_numbers(place: str) -> str:
    """``sources`` for ``sources.0``: what is not read is so in all of them."""
    return ".".join(part for part in place.split(".") if not part.isdecimal())
