"""What records of settings share: each field with its help and where it counts, and errors for people."""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping
from types import UnionType
from typing import Annotated, Any, Literal, NamedTuple, Self, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from evaltrack.errors import UsageError

Logged = Literal["always", "chosen", "never"]
"""Whether a setting is a param of the run: always, where it is not the default, or never, or in another form."""


Texts = Annotated[tuple[str, ...], BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)]
"""Texts, or one."""

OptionalText = Annotated[str, BeforeValidator(lambda value: "" if value is None else os.fspath(value))]
"""A text or a path; "" and None are none."""

Options = Annotated[Mapping[str, str], BeforeValidator(lambda value: {} if value is None else value)]
"""Texts by name; None is none."""


class Traits(NamedTuple):
    """What is known of a setting besides its type, bounds, default and help.

    `shapes` is whether a row may be another with another value, so that a run cannot be resumed with it. `flag` is
    the short form of its option, such as ``-t``, or the form that says no.
    """

    logged: Logged = "always"
    shapes: bool = True
    flag: str = ""


def setting(
    default: Any, text: str, *, logged: Logged = "always", shapes: bool = True, flag: str = "", **bounds: Any
) -> Any:
    """A field of a record of settings; `text` is its help, `bounds` are those of pydantic's `Field`."""
    extra: Any = {"traits": Traits(logged, shapes, flag)}
    return Field(default=default, description=text, json_schema_extra=extra, **bounds)


def traits(field: FieldInfo) -> Traits:
    """What `setting` adds to a field besides what pydantic holds."""
    extra = field.json_schema_extra
    own_traits = extra.get("traits") if isinstance(extra, dict) else None
    return own_traits if isinstance(own_traits, Traits) else Traits()


class Config(BaseModel):
    """Base of the records of settings."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    @classmethod
    def of(cls, **values: Any) -> Self:
        """The settings with these values.

        Raises:
            UsageError: a value cannot be used; the message names the first.
            TypeError: there is no such setting.
        """
        for name in values.keys() - cls.model_fields.keys():
            near = difflib.get_close_matches(name, cls.model_fields, n=1)
            raise TypeError(f"there is no setting `{name}`" + (f"; did you mean `{near[0]}`?" if near else ""))
        try:
            return cls(**values)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            name = str(first["loc"][0])
            raise UsageError(f"{name} is {values[name]}; write {cure(cls.model_fields[name])}") from None


def cure(field: FieldInfo) -> str:
    """What may be written for a setting, from its type and bounds."""
    if get_origin(field.annotation) is Literal:
        *others, last = map(str, get_args(field.annotation))
        return f"{', '.join(others)} or {last}"
    if get_origin(field.annotation) in (Union, UnionType) and str in map(type, _choices(field.annotation)):
        return f"{' or '.join(map(str, _choices(field.annotation)))} or a number of times"
    bounds = {type(each): each for each in field.metadata}
    number = "a whole number" if field.annotation is int else "a number"
    if Gt in bounds:
        return f"{number} of seconds above {bounds[Gt].gt:g}"
    if Ge in bounds and Le in bounds:
        return f"{number} from {bounds[Ge].ge:g} to {bounds[Le].le:.15g}"
    if Ge in bounds:
        return f"{number} of at least {bounds[Ge].ge:g}"
    kinds = {str: "a text", bool: "true or false"}
    return kinds.get(field.annotation, "texts")  # type: ignore[arg-type]


def _choices(annotation: Any) -> list[Any]:
    """The literal values in a union of types."""
    return [value for each in get_args(annotation) if get_origin(each) is Literal for value in get_args(each)]
