"""Defines the base class of records and the types of their texts and numbers; formats counts such as `2 questions`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from numbers import Integral
from typing import Annotated, Any
from unicodedata import normalize

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints, WithJsonSchema


class Record(BaseModel):
    """The base class of all records: frozen, without unknown fields, with finite numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)


def as_key(value: object) -> object:
    """Return an id as text for comparisons: ``5`` equals ``"5"``, and both spellings of `café` are equal.

    A whole number is read as ``5.0`` if a cell of its column was empty.
    """
    if isinstance(value, str):
        return value if value.isascii() else normalize("NFC", value)
    is_whole = isinstance(value, Integral) or (isinstance(value, float) and value.is_integer() and abs(value) < 1 << 53)
    return str(int(value)) if is_whole and not isinstance(value, bool) else value  # type: ignore[call-overload]


def storable(value: object) -> object:
    """Return the value. A text must be storable in every database and in UTF-8: no NUL, no half of a surrogate pair."""
    if isinstance(value, str):
        if "\0" in value:
            raise ValueError("holds a NUL character")
        if not value.isascii():
            try:
                value.encode()
            except UnicodeEncodeError:
                raise ValueError("holds half of a surrogate pair, which is not text") from None
    return value


def without_halves(text: str) -> str:
    """Return the text with the replacement character for each half of a surrogate pair."""
    return text if text.isascii() else text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def valid_text(text: str) -> str:
    """Return the text with the replacement character for what no database holds. It occurs in texts of PDFs."""
    return without_halves(text.replace("\0", "\N{REPLACEMENT CHARACTER}"))


def _replaced(value: object) -> object:
    return valid_text(value) if isinstance(value, str) else value


def _finite(value: object) -> object:
    """Refuse infinite numbers: JSON has none, but ``1e999`` is read as one."""
    if isinstance(value, float) and not isfinite(value):
        raise ValueError("holds a number that is not finite")
    if isinstance(value, Mapping | list):
        for item in value.values() if isinstance(value, Mapping) else value:
            _finite(item)
    return value


Text = Annotated[str, BeforeValidator(storable)]
ForeignText = Annotated[str, BeforeValidator(storable), BeforeValidator(_replaced)]
KEY_SCHEMA: dict[str, Any] = {"type": ["string", "integer"], "minLength": 1}
Key = Annotated[
    str,
    StringConstraints(min_length=1),
    BeforeValidator(as_key),
    BeforeValidator(storable),
    WithJsonSchema(KEY_SCHEMA, mode="validation"),
]
ForeignKey = Annotated[Key, BeforeValidator(_replaced)]
FreeObject = Annotated[Mapping[str, Any], BeforeValidator(_finite)]
Count = Annotated[int, Field(ge=0, lt=1 << 63)]


def count(amount: int, noun: str, plural: str = "") -> str:
    """Return ``1 question`` or ``100,000 questions``. `plural` is needed if it is not the noun with an s."""
    return f"{amount:,} {noun if amount == 1 else plural or f'{noun}s'}"


def verb(amount: int, of_one: str, of_several: str) -> str:
    """Return the verb for the amount: ``was`` for 1, ``were`` for 0 and several."""
    return of_one if amount == 1 else of_several


def cut(text: str, limit: int) -> str:
    """Return at most `limit` characters of the text. A longer text ends in an ellipsis."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"


def first_of(names: Sequence[str], most: int, total: int | None = None) -> str:
    """Return the first names: ``q1, q2, q3, …``. `total` is the number of all names if `names` does not hold all."""
    total = len(names) if total is None else total
    return ", ".join(names[:most]) + ", …" * (total > min(most, len(names)))
