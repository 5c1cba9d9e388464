"""What all records share: frozen, closed, finite; and the kinds of text that can be stored anywhere."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from numbers import Integral
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints


class Record(BaseModel):
    """Base of all records: frozen, closed, finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def _key(value: object) -> object:
    """Ids may be whole numbers, numpy's too; they are compared as strings: ``5`` and ``"5"`` are one chunk."""
    if isinstance(value, str | bool) or not isinstance(value, Integral):
        return value
    return str(int(value))


def storable(value: object) -> object:
    """Text that every database and UTF-8 can hold: no NUL, no half of a surrogate pair."""
    if isinstance(value, str):
        if "\0" in value:
            raise ValueError("holds a NUL character")
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise ValueError("holds half of a surrogate pair, which is no text") from None
    return value


def _without_nul(value: object) -> object:
    """A target's text, often from a PDF: a NUL is replaced, as it would be lost on the way to a database."""
    return value.replace("\0", "\N{REPLACEMENT CHARACTER}") if isinstance(value, str) and "\0" in value else value


def _finite(value: object) -> object:
    """JSON has no infinity, but ``1e999`` is read as one."""
    if isinstance(value, float) and not isfinite(value):
        raise ValueError("holds a number that is not finite")
    if isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            _finite(item)
    return value


Text = Annotated[str, BeforeValidator(storable)]
ForeignText = Annotated[str, BeforeValidator(storable), BeforeValidator(_without_nul)]
Key = Annotated[str, StringConstraints(min_length=1), BeforeValidator(_key), BeforeValidator(storable)]
FreeObject = Annotated[Mapping[str, Any], BeforeValidator(_finite)]
Count = Annotated[int, Field(ge=0, lt=1 << 63)]
