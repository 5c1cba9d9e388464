"""Defines the base class of JSON outputs, the forms that several of them share, and their schemas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter

from evaltrack.records import Signature

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class Form(BaseModel):
    """An object in an output. Each field is always there; its type says if it may be null."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    @classmethod
    def of(cls, record: object, /, **fields: Any) -> dict[str, Any]:
        """Return the object to write. Each field is from `fields`, else the record's attribute of this name."""
        names = (field.alias or name for name, field in cls.model_fields.items())
        return {name: _data(fields[name] if name in fields else getattr(record, name)) for name in names}


def _data(value: Any) -> Any:
    """Return records and mappings as data for JSON, other values unchanged."""
    if isinstance(value, BaseModel):
        return value.model_dump()
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    if isinstance(value, Mapping):
        return dict(value)
    return list(value) if isinstance(value, tuple) else value


class Mean(Form):
    """A mean, and its number of questions."""

    mean: float
    n: int


class Delta(Form):
    """A number of one question on both sides."""

    baseline: float
    candidate: float


class CriterionState(Form):
    """A criterion of one run: its value, if it is met, and the highest reachable value."""

    value: float | None
    met: bool | None
    reachable: float | None


def schema_of(kind: Any, name: str, title: str) -> dict[str, Any]:
    """Return the schema of the written form of this type. A signature omits `selection` and `scores` if it has none."""
    made = headed(_open(plain(TypeAdapter(kind).json_schema(mode="serialization", by_alias=True))), name, title)
    if "Signature" in made.get("$defs", {}):
        signature = plain(Signature.model_json_schema())
        made["$defs"] |= signature.pop("$defs")
        signature["required"] = [each for each in signature["properties"] if each not in ("selection", "scores")]
        made["$defs"]["Signature"] = signature | {"additionalProperties": True}
    return made


def headed(schema: dict[str, Any], name: str, title: str) -> dict[str, Any]:
    """Return the schema with its dialect, name and title."""
    return {"$schema": DIALECT, "$id": f"urn:evaltrack:{name}", "title": title} | {
        key: value for key, value in schema.items() if key != "title"
    }


def plain(schema: Any, *, names: bool = False) -> Any:
    """Return the schema without titles that repeat the names of fields. `names`: its keys are such names."""
    if isinstance(schema, dict):
        kept = {key: each for key, each in schema.items() if names or key != "title"}
        return {key: plain(each, names=key in ("properties", "$defs") and not names) for key, each in kept.items()}
    return [plain(each) for each in schema] if isinstance(schema, list) else schema


def _open(schema: Any) -> Any:
    """Return the schema of an output: each field is required, and other fields are allowed for later versions."""
    if isinstance(schema, dict):
        dropped = (("additionalProperties", False), ("default", schema.get("default")))
        kept = {key: _open(each) for key, each in schema.items() if (key, each) not in dropped}
        return kept | {"required": list(schema["properties"])} if isinstance(schema.get("properties"), dict) else kept
    return [_open(each) for each in schema] if isinstance(schema, list) else schema
