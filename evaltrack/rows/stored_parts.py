"""The parts of a stored row: its sources, verdicts and turns, from the objects of a table and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from evaltrack.records import Role


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTurn:
    """One message before the question."""

    role: Role = "user"
    content: str = ""


P = TypeVar("P", StoredSource, StoredVerdict, StoredTurn)

_NAMES = {kind: tuple(each.name for each in fields(kind)) for kind in (StoredSource, StoredVerdict, StoredTurn)}


def parts_of(kind: type[P], items: Iterable[Mapping[str, Any]] | None) -> tuple[P, ...]:
    """Objects of one kind, none where there is no list; fields of a newer version are left alone."""
    return tuple([_part(kind, item) for item in items or ()])


def _part(kind: type[P], item: Mapping[str, Any]) -> P:
    values = {name: item[name] for name in _NAMES[kind] if name in item}
    if "finds" in values:
        values["finds"] = tuple(values["finds"] or ())
    return kind(**values)


def object_of(item: StoredSource | StoredVerdict | StoredTurn) -> dict[str, Any]:
    """The object of a part as a table holds it."""
    values = {name: getattr(item, name) for name in _NAMES[type(item)]}
    return values | {"finds": list(values["finds"]) or None} if "finds" in values else values
