"""Which values the fields of a golden line can have."""

from __future__ import annotations

from functools import cache
from typing import Any, get_type_hints

from pydantic import TypeAdapter, ValidationError

from evaltrack.records import Question


@cache
def _adapter(name: str) -> TypeAdapter[Any]:
    return TypeAdapter(get_type_hints(Question, include_extras=True)[name])


def fits(name: str, value: object) -> bool:
    """Whether a field of a golden line can have this value."""
    try:
        _adapter(name).validate_python(value)
    except ValidationError:
        return False
    return value is not None
