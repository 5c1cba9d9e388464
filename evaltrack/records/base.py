"""What all records share: frozen, closed, finite; and the kinds of text that can be stored anywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from math import isfinite
from numbers import Integral
from typing import Annotated, Any, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, StringConstraints


class Record(BaseModel):
    """Base of all records: frozen, closed, finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


R = TypeVar("R", bound=Record)


def record_of(kind: type[R], fields: dict[str, Any]) -> R:
    """A record of fields that are valid already, each as the record holds it; nothing is checked again.

    It has the defaults of what is left out, and takes a tenth of the time of `model_construct`.
    """
    defaults, factories = _defaults(kind)
    values = defaults | fields
    for name, factory in factories:
        if name not in fields:
            values[name] = factory()
    record = kind.__new__(kind)
    put = object.__setattr__  # a record is frozen; these four are all that pydantic's `BaseModel` holds
    put(record, "__dict__", values)
    put(record, "__pydantic_fields_set__", set(fields))
    put(record, "__pydantic_extra__", None)
    put(record, "__pydantic_private__", None)
    return record


@cache
def _defaults(kind: type[Record]) -> tuple[dict[str, Any], tuple[tuple[str, Callable[[], Any]], ...]]:
    """The fields of a record in their order, each with its default, and what makes the defaults of some of them."""
    fields = kind.model_fields
    factories = ((name, field.default_factory) for name, field in fields.items() if field.default_factory is not None)
    plain = {name: None if field.is_required() else field.default for name, field in fields.items()}
    return plain, cast("tuple[tuple[str, Callable[[], Any]], ...]", tuple(factories))


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
