"""The parts of a stored row: its sources, verdicts and turns, from the objects of a table and back."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from itertools import repeat
from typing import Any, TypeVar, dataclass_transform

from evaltrack.records import Role
from evaltrack.rows.fields import SOURCE_COLUMNS, TURN_COLUMNS, VERDICT_COLUMNS

T = TypeVar("T")


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
def stored_record(kind: type[T]) -> type[T]:
    """Make a data class of keywords whose fields a type checker lets nobody set.

    It is neither at run time: a frozen record takes three times as long to build, keywords half as long again, and a
    table has millions.
    """
    return dataclass(slots=True, unsafe_hash=True)(kind)


def records_of(kind: type[T], columns: Mapping[str, Iterable[Any]]) -> Iterator[T]:
    """A record for each of the values in these columns, with its defaults in place of the columns that are not there.

    At least one column is there; none of those that are left out has a default that is made anew for each record.
    """
    values = (columns[each.name] if each.name in columns else repeat(each.default) for each in fields(kind))  # type: ignore[arg-type]
    return map(kind, *values)


@stored_record
class StoredSource:
    """One source that was returned.

    `text` is None beyond the first k, `text_digest` is of all of it. `finds` names the expected passages that it holds
    and no source above it does; a repeat has those of its first occurrence.
    """

    chunk_id: str | None = None
    title: str | None = None
    url: str | None = None
    score: float | None = None
    text: str | None = None
    text_digest: str | None = None
    finds: tuple[str, ...] = ()


@stored_record
class StoredVerdict:
    """What one judge said; `observed` is JSON of an `Observed`."""

    judge: str
    reasoning: str = ""
    overall_score: float | None = None
    accuracy: float | None = None
    completeness: float | None = None
    relevance: float | None = None
    declined: bool | None = None
    observed: str | None = None
    cached: bool = False
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


@stored_record
class StoredTurn:
    """One message before the question."""

    role: Role = "user"
    content: str = ""


_FIELDS = {
    StoredSource: tuple(column.name for column in SOURCE_COLUMNS),
    StoredVerdict: tuple(column.name for column in VERDICT_COLUMNS),
    StoredTurn: tuple(column.name for column in TURN_COLUMNS),
}


_SOURCE_FIELDS = frozenset(_FIELDS[StoredSource])

Part = StoredSource | StoredVerdict | StoredTurn


P = TypeVar("P", StoredVerdict, StoredTurn)


def parts_of(kind: type[P], items: list[dict[str, Any]] | None) -> tuple[P, ...]:
    """Objects of one kind, none where there is no list."""
    return tuple([kind(**_values_of(kind, item)) for item in items]) if items else ()


def source_of(item: Mapping[str, Any]) -> StoredSource:
    """A source; one without `finds` finds nothing."""
    values = dict(item) if item.keys() <= _SOURCE_FIELDS else _values_of(StoredSource, item)
    values["finds"] = tuple(values.get("finds") or ())
    return StoredSource(**values)


def _values_of(kind: type[Part], item: Mapping[str, Any]) -> dict[str, Any]:
    """The fields that are there; those of a newer version are left alone."""
    return {name: item[name] for name in _FIELDS[kind] if name in item}


def object_of(item: Part) -> dict[str, Any]:
    """The object of a part as a table holds it."""
    values = {name: getattr(item, name) for name in _FIELDS[type(item)]}
    return values | {"finds": list(values["finds"]) or None} if "finds" in values else values
