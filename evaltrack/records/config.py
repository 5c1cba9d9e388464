"""Defines the base class of the settings records, the form of their fields, and their error messages."""

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
"""When a setting is logged as a param of the run: always, if it is not the default, or never (or in another form)."""


def _tuple(value: object) -> object:
    if isinstance(value, str):
        return (value,)
    return tuple(value) if isinstance(value, Collection) and not isinstance(value, Mapping) else value


def _text(value: object) -> object:
    return "" if value is None else os.fspath(value) if isinstance(value, os.PathLike) else value


def _table(value: object, info: ValidationInfo) -> object:
    """Return a table of texts from a table of any values or from texts NAME=VALUE."""
    if value is None or isinstance(value, Mapping):
        return {name: each if isinstance(each, str) else str(each) for name, each in (value or {}).items()}
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list | tuple):
        return value
    pairs = [str(each).partition("=") for each in texts]
    if not all(name and sign for name, sign, _ in pairs):  # not repeated: it may be a secret
        raise UsageError(f"`{info.field_name}=`: one has no `=`, or nothing before it; write NAME=VALUE")
    return {name: each for name, _, each in pairs}


Texts = Annotated[tuple[str, ...], BeforeValidator(_tuple)]
"""One text or several."""

OptionalText = Annotated[str, BeforeValidator(_text)]
"""A text or a path. None is ""."""

Table = Annotated[Mapping[str, str], BeforeValidator(_table)]
"""Texts by name. Numbers and flags become texts, and None becomes an empty table."""


class Traits(NamedTuple):
    """Properties of a setting that pydantic does not hold.

    `group` is the heading of its option. `option` is the spelling of the option, such as ``-t --target``; a setting
    without one is set by ``--set``. `shapes` is True if the setting can change a row, so that a run cannot be resumed
    with another value.
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
    """Return a field of a settings record. `text` is its help, and `bounds` are arguments of pydantic's `Field`."""
    extra: Any = {"traits": Traits(group, option, logged, shapes)}
    return Field(default=default, description=text, json_schema_extra=extra, **bounds)


def traits(field: FieldInfo) -> Traits:
    """Return the traits that `setting` adds to a field."""
    extra = field.json_schema_extra
    own_traits = extra.get("traits") if isinstance(extra, dict) else None
    return own_traits if isinstance(own_traits, Traits) else Traits()


SHORTEST = 3
"""The fewest characters of a name that is searched for inside other names."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of a message: the most similar known name, those that contain the name, or all known names."""
    names, wanted = {each.lower(): each for each in sorted(known)}, name.lower()
    holders = [each for each in names if len(name) >= SHORTEST and wanted in each]
    near = holders if len(holders) > 1 else difflib.get_close_matches(wanted, names, n=1) or holders
    meant = " or ".join(f"`{names[each]}`" for each in near)
    return f"did you mean {meant}?" if meant else f"there are {', '.join(names.values())}"


class Config(BaseModel):
    """The base class of settings records."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, strict=True)

    command: ClassVar[str]
    """The command of the settings. It names their table in the settings file and their variables."""

    @classmethod
    def of(cls, **values: Any) -> Self:
        """Return the settings with these values.

        Raises:
            UsageError: a value is invalid; each is a line of the message.
            TypeError: there is no such setting.
        """
        for name in values.keys() - cls.model_fields.keys():
            raise TypeError(f"there is no setting `{name}`; {did_you_mean(name, cls.model_fields)}")
        try:
            return cls(**values)
        except ValidationError as error:
            names = dict.fromkeys(str(each["loc"][0]) for each in error.errors(include_url=False))
            problems = (f"{name} must be {cure(cls.model_fields[name])}, not `{values[name]}`" for name in names)
            raise UsageError("\n".join(problems)) from None

    @classmethod
    def parsed(cls, texts: Mapping[str, Sequence[str]]) -> dict[str, Any]:
        """Return the values of settings written as texts. The last text counts if a setting has one value."""
        return {name: _parsed(cls.model_fields[name], each) for name, each in texts.items() if each}


def takes_several(field: FieldInfo) -> bool:
    """Return True if a setting is written once for each of its texts."""
    return get_origin(field.annotation) in (tuple, Mapping)


def _parsed(field: FieldInfo, texts: Sequence[str]) -> Any:
    """Return the value, or the text itself if it has another type."""
    if takes_several(field):
        return tuple(texts)
    for kind in {field.annotation, *get_args(field.annotation)} & {int, float}:
        with suppress(ValueError):
            return kind(texts[-1])
    return {"true": True, "false": False}.get(texts[-1].lower(), texts[-1]) if field.annotation is bool else texts[-1]


def cure(field: FieldInfo) -> str:
    """Return the valid values of a setting in words, from its type and bounds."""
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
    kinds = {str: "a string", bool: "true or false", Mapping: "NAME=VALUE"}
    return kinds.get(get_origin(field.annotation) or field.annotation, "one or more strings")  # type: ignore[arg-type]
