"""Recorded responses in their plain form, which most lines have: read in one step, without a look at each field.

A line is plain if it is an object of the fields below, whose sources are objects that have a `chunk_id`, and every
value has its own type. Any other line is read, or refused with a reason, by `evaltrack.targets.responses`.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import ValidationError
from pydantic_core import SchemaValidator
from pydantic_core import core_schema as core

from evaltrack.records import Response, Source
from evaltrack.records.base import record_of
from evaltrack.records.json_text import may_repeat
from evaltrack.records.question import MAX_VARIANTS

MAX_SOURCES = 1000
"""Sources of a plain line."""

REQUIRED = frozenset({"id", "sources", "chunk_id"})
"""Fields that a plain line, or a source of it, holds; the others may be left out."""

NUL = b"\\u0000"
"""How JSON writes a NUL character, which no text may hold; what is no text otherwise is no JSON either."""


def plain_place(raw: bytes) -> tuple[str, int] | None:
    """Question id and wording of a plain line; None where it is not plain, or a key may stand in it twice."""
    fields = _fields(raw, _checker())
    if fields is None or may_repeat(raw, len(fields) + sum(map(len, fields["sources"]))):
        return None
    return str(fields["id"]), fields.get("wording", 0)


def plain_response(raw: bytes) -> tuple[str, int, Response] | None:
    """Question id, wording and response of a plain line; None where it is not plain."""
    fields = _fields(raw, _reader())
    if fields is None:
        return None
    key, wording = str(fields.pop("id")), fields.pop("wording", 0)
    return key, wording, record_of(Response, fields)


def _fields(raw: bytes, validator: SchemaValidator) -> dict[str, Any] | None:
    if NUL in raw:
        return None
    try:
        fields: dict[str, Any] = validator.validate_json(raw, strict=True)
    except ValidationError:
        return None
    return fields


@cache
def _checker() -> SchemaValidator:
    """Tells plain lines, and makes no records of their sources."""
    return _line_of(core.typed_dict_schema(_typed(_source_fields()), extra_behavior="forbid"))


@cache
def _reader() -> SchemaValidator:
    fields = {
        name: core.model_field(schema if name in REQUIRED else core.with_default_schema(schema, default=None))
        for name, schema in _source_fields().items()
    }
    return _line_of(core.model_schema(Source, core.model_fields_schema(fields, extra_behavior="forbid"), frozen=True))


def _source_fields() -> dict[str, core.CoreSchema]:
    return {
        "chunk_id": core.str_schema(min_length=1),
        **dict.fromkeys(("title", "url", "text"), core.nullable_schema(core.str_schema())),
        "score": core.nullable_schema(core.float_schema(allow_inf_nan=False)),
    }


def _line_of(source: core.CoreSchema) -> SchemaValidator:
    """A line whose sources are these; what it does not hold is no field of the result."""
    line: dict[str, core.CoreSchema] = {
        "id": core.union_schema([core.str_schema(min_length=1), core.int_schema()]),
        "wording": core.int_schema(ge=0, le=MAX_VARIANTS),
        "sources": core.tuple_variable_schema(source, max_length=MAX_SOURCES),
        "answer": core.str_schema(),
        "abstained": core.bool_schema(),
        "model": core.str_schema(),
    }
    return SchemaValidator(core.typed_dict_schema(_typed(line), extra_behavior="forbid"))


def _typed(fields: dict[str, core.CoreSchema]) -> dict[str, core.TypedDictField]:
    return {name: core.typed_dict_field(schema, required=name in REQUIRED) for name, schema in fields.items()}
