"""What records of settings share: each field with its help and where it counts, and errors for people."""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Annotated, Any, ClassVar, Literal, NamedTuple, Self, get_args, get_origin

from annotated_types import Ge, Gt, Le
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, ValidationInfo
from pydantic.fields import FieldInfo

from evaltrack.errors import UsageError

Logged = Literal["always", "chosen", "never"]
"""Whether a setting is a param of the run: always, where it is not the default, or never, or in another form."""


def _tuple(value: object) -> object:
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, Collection) and not isinstance(value, Mapping) else value


def _text(value: object) -> object:
    return "" if value is None else os.fspath(value) if isinstance(value, os.PathLike) else value


def _table(value: object, info: ValidationInfo) -> object:
    """A table of texts, out of a table of anything, or of texts NAME=VALUE."""
    if value is None or isinstance(value, Mapping):
        return {name: each if isinstance(each, str) else str(each) for name, each in (value or {}).items()}
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple):
        return value
    pairs = [str(each).partition("=") for each in texts]
    if not all(name and sign for name, sign, _ in pairs):  # it may be a secret, and is not repeated
        raise UsageError(f"`{info.field_name}=`: one has no `=`, or nothing before it; write NAME=VALUE")
    return {name: each for name, _, each in pairs}


Texts = Annotated[tuple[str, ...], BeforeValidator(_tuple)]
"""Texts, or one."""

OptionalText = Annotated[str, BeforeValidator(_text)]
"""A text or a path; "" and None are none."""

Table = Annotated[Mapping[str, str], BeforeValidator(_table)]
"""Texts by name; numbers and flags become texts, and None is none."""


class Traits(NamedTuple):
    """What is known of a setting besides its type, bounds, default and help.

    `group` is the heading of its option, and `option` how that is written, such as ``-t --target``; a setting without
    one is reached by ``--set``. `shapes` is whether a row may be another with another value, so that a run cannot be
    resumed with it.
    """

    group: str = ""
    option: str = ""
    logged: Logged = "always"
    shapes: bool = True


def setting(
    default: Any,
    text: str,
    *,
    group: str = "",
    option: str = "",
    logged: Logged = "always",
    shapes: bool = True,
    **bounds: Any,
) -> Any:
    """A field of a record of settings; `text` is its help, `bounds` are those of pydantic's `Field`."""
    extra: Any = {"traits": Traits(group, option, logged, shapes)}
    return Field(default=default, description=text, json_schema_extra=extra, **bounds)


def traits(field: FieldInfo) -> Traits:
    """What `setting` adds to a field besides what pydantic holds."""
    extra = field.json_schema_extra
    own_traits = extra.get("traits") if isinstance(extra, dict) else None
    return own_traits if isinstance(own_traits, Traits) else Traits()


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """The nearest of the names that there are, as the end of a message; else all of them."""
    known = sorted(known)
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean `{near[0]}`?" if near else f"there are {', '.join(known)}"


class Config(BaseModel):
    """Base of the records of settings."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, strict=True)

    command: ClassVar[str]
    """The command whose settings they are, which names their table in the settings file and their variables."""

    @classmethod
    def of(cls, **values: Any) -> Self:
        """The settings with these values.

        Raises:
            UsageError: a value cannot be used; the message names the first.
            TypeError: there is no such setting.
        """
        for name in values.keys() - cls.model_fields.keys():
            raise TypeError(f"there is no setting `{name}`; {did_you_mean(name, cls.model_fields)}")
        try:
            return cls(**values)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
            name = str(first["loc"][0])
            raise UsageError(f"{name} is {values[name]}; write {cure(cls.model_fields[name])}") from None

    @classmethod
    def parsed(cls, texts: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        """The values that are written as texts; of a setting with one value the last counts."""
        return {name: _parsed(cls.model_fields[name], each) for name, each in texts.items() if each}


def takes_several(field: FieldInfo) -> bool:
    """Whether a setting is written once for each of its texts."""
    return get_origin(field.annotation) in (tuple, Mapping)


def _parsed(field: FieldInfo, texts: Sequence[str]) -> Any:
    """The value, or the text itself where it is none of the setting's type."""
    if takes_several(field):
        return tuple(texts)
    for kind in {field.annotation, *get_args(field.annotation)} & {int, float}:
        with suppress(ValueError):
            return kind(texts[-1])
    return {"true": True, "false": False}.get(texts[-1].lower(), texts[-1]) if field.annotation is bool else texts[-1]


def cure(field: FieldInfo) -> str:
    """What may be written for a setting, from its type and bounds."""
    if get_origin(field.annotation) is Literal:
        *others, last = map(str, get_args(field.annotation))
        return f"{', '.join(others)} or {last}"
    bounds = {type(each): each for each in field.metadata}
    number = "a whole number" if int in (field.annotation, *get_args(field.annotation)) else "a number"
    if Gt in bounds:
        return f"{number} of seconds above {bounds[Gt].gt:g}"
    if Ge in bounds and Le in bounds:
        return f"{number} from {bounds[Ge].ge:g} to {bounds[Le].le:.15g}"
    if Ge in bounds:
        return f"{number} of at least {bounds[Ge].ge:g}"
    kinds = {str: "a text", bool: "true or false", Mapping: "NAME=VALUE"}
    return kinds.get(get_origin(field.annotation) or field.annotation, "texts")  # type: ignore[arg-type]
