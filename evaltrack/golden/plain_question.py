"""Golden lines in their plain form, which most have: made into a question in one step, without a look at each field.

A line is plain if it has ids or titles without grades, labels and texts, and every value has its own type. Any other
line is read, or refused with all that is wrong, by `Question` itself.
"""

from __future__ import annotations

from functools import cache
from typing import get_args

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import SchemaValidator
from pydantic_core import core_schema as core

from evaltrack.records import Question
from evaltrack.records.question import Difficulty

TEXT = r"^[^\x00]*$"
"""A text that can be stored; half of a surrogate pair is no text to the validator."""


def plain_question(value: dict[str, object]) -> Question | None:
    """The question that a plain line is; None where it is not plain."""
    try:
        question: Question = _validator().validate_python(value)
    except ValidationError:
        return None
    if question.expected_chunks is not None and question.expected_sources is not None:
        return None  # they may contradict each other
    return question


class _NotPlain:
    """No value is one, so that a field of this kind can only be left out."""


def _defaulted(schema: core.CoreSchema, field: FieldInfo) -> core.CoreSchema:
    """The schema with the default of a field, where it has one."""
    if field.is_required():
        return schema
    if field.default_factory is not None:
        return core.with_default_schema(schema, default_factory=field.default_factory)
    return core.with_default_schema(schema, default=field.default)


@cache
def _validator() -> SchemaValidator:
    text = core.str_schema(pattern=TEXT, strict=True)
    key = core.str_schema(pattern=TEXT, min_length=1, strict=True)
    keys = core.tuple_variable_schema(key, strict=False)
    plain = {
        "id": key,
        "question": core.chain_schema([core.str_schema(pattern=r"\S", strict=True), text]),
        **dict.fromkeys(("expected_chunks", "expected_sources"), core.nullable_schema(keys)),
        **dict.fromkeys(("expected_answer", "category", "notes"), core.nullable_schema(text)),
        "difficulty": core.nullable_schema(core.literal_schema(list(get_args(Difficulty)))),
        "domain": key,
    }
    other = core.is_instance_schema(_NotPlain)
    fields = {
        name: core.model_field(_defaulted(plain.get(name, other), field))
        for name, field in Question.model_fields.items()
    }
    return SchemaValidator(core.model_schema(Question, core.model_fields_schema(fields, extra_behavior="forbid")))
