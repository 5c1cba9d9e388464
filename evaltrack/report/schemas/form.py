"""Defines the base class of the JSON of runs, comparisons and sweeps, and makes JSON Schemas of types."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import is_dataclass
from math import isfinite
from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, model_validator

from evaltrack.records import Signature
from evaltrack.records.base import Count, without_halves

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class Form(BaseModel):
    """An object in an output, built from the attributes of a record. Each field is always there; its type says if it
    may be null.
    """

    model_config = ConfigDict(frozen=True, from_attributes=True, populate_by_name=True)

    @classmethod
    def of(cls, record: object, /, **fields: Any) -> Self:
        """Return the form of a record. `fields` replace its attributes, and add others."""
        return cls.model_validate(_Replaced(record, fields) if fields else record)

    def data(self) -> dict[str, Any]:
        """Return the object to write: all JSON writers and UTF-8 can hold it. A number that is not finite is null."""
        written: dict[str, Any] = _storable(self.model_dump(by_alias=True))
        return written


def record_data(record: object, name: str) -> dict[str, Any]:
    """Return the object to write of a record without a form of its own, under the name of its schema."""
    return {"schema": f"evaltrack.{name}/1", **_storable(TypeAdapter(type(record)).dump_python(record))}


class _Replaced:
    """A record with other attributes in place of some of its own."""

    def __init__(self, record: object, fields: dict[str, Any]) -> None:
        self._record = record
        self.__dict__ |= fields

    def __getattr__(self, name: str) -> Any:
        return getattr(self._record, name)


def _storable(value: Any) -> Any:
    """Return the value with null for numbers that are not finite, and replacement characters for lone surrogates."""
    if isinstance(value, str):
        return without_halves(value)
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {_storable(key): _storable(item) for key, item in value.items()}
    return [_storable(item) for item in value] if isinstance(value, list | tuple) else value


Number = Annotated[float, Field(ge=-1e15, le=1e15)]
"""A finite number. Scores have these bounds too."""


class Mean(Form):
    """A mean, and its number of questions."""

    mean: Number
    n: Count

    @model_validator(mode="before")
    @classmethod
    def _of_pair(cls, pair: object) -> object:
        return dict(zip(("mean", "n"), pair, strict=True)) if isinstance(pair, tuple) else pair


class Delta(Form):
    """A number of one question on both sides."""

    baseline: float
    candidate: float


def schema_of(kind: Any, name: str, title: str) -> dict[str, Any]:
    """Return the schema of the written form of this type."""
    made = headed(_open(TypeAdapter(kind).json_schema(mode="serialization", by_alias=True)), name, title)
    if is_dataclass(kind):
        made["properties"] |= {"schema": {"const": f"evaltrack.{name}/1"}}
        made["required"] = list(made["properties"])
    if "Signature" in made.get("$defs", {}):
        signature = Signature.model_json_schema()
        made["$defs"] |= signature.pop("$defs")
        signature["required"] = list(signature["properties"])
        made["$defs"]["Signature"] = signature | {"additionalProperties": True}
    return made


def headed(schema: dict[str, Any], name: str, title: str) -> dict[str, Any]:
    """Return the schema with its dialect, name and title."""
    return {"$schema": DIALECT, "$id": f"urn:evaltrack:{name}"} | schema | {"title": title}


def _open(schema: Any) -> Any:
    """Return the schema of an output: each field is required, and other fields are allowed for later versions."""
    if isinstance(schema, dict):
        dropped = (("additionalProperties", False), ("default", schema.get("default")))
        kept = {key: _open(each) for key, each in schema.items() if (key, each) not in dropped}
        return kept | {"required": list(schema["properties"])} if isinstance(schema.get("properties"), dict) else kept
    return [_open(each) for each in schema] if isinstance(schema, list) else schema
