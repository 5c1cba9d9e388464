"""Makes click options from settings records, and takes option defaults from the settings file and the environment."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial, wraps
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import click
from pydantic.fields import FieldInfo

from evaltrack.errors import UsageError
from evaltrack.evaluation.settings_sources import table_place, underscored
from evaltrack.records.config import Config, did_you_mean, takes_several, traits

OTHERS = "Options"
"""The heading of options without a group. It is the last."""

OF_CALLER = ("golden", "target", "judge")
"""Settings that may name a file in the folder where `mlflow run` was called."""


class GroupedOption(click.Option):
    """An option that the help of a `GroupedCommand` lists under a heading."""

    def __init__(self, *arguments: Any, group: str = "", **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.group = group


class GroupedCommand(click.Command):
    """A command whose help lists its options under headings."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each heading."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for parameter in self.get_params(ctx):
            if isinstance(parameter, click.Option) and (record := parameter.get_help_record(ctx)) is not None:
                sections.setdefault(getattr(parameter, "group", "") or OTHERS, []).append(record)
        for heading in sorted(sections, key=lambda heading: heading == OTHERS):
            with formatter.section(heading):
                formatter.write_dl(sections[heading])


def in_group(heading: str) -> dict[str, Any]:
    """Return keyword arguments of `click.option` for an option under this heading."""
    return {"cls": GroupedOption, "group": heading}


def output_option(*others: str, default: Literal["table", "auto"] = "table") -> Callable[[Any], Any]:
    """Return the option `--output` with the forms of a command. `auto` is JSON if stdout is a file."""
    auto = default == "auto"
    return click.option(
        "--output",
        default=default,
        show_default=True,
        type=click.Choice([*["auto"] * auto, "table", "json", *others]),
        help="Format of stdout" + ("; auto: a table, or JSON where stdout is a file." if auto else "."),
        **in_group("Result"),
    )


def no_empty_name(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
    """Return the value of an optional argument. This is a callback of click.

    Raises:
        UsageError: an empty text was typed, for example from a shell variable that is not set.
    """
    typed = param.name and ctx.get_parameter_source(param.name) is click.core.ParameterSource.COMMANDLINE
    if typed and (value == "" or (isinstance(value, tuple) and "" in value)):
        raise UsageError("an argument or option is empty (a variable that is not set?); write a name, or leave it out")
    return value


def settings_options(record: type[Config], *names: str) -> Callable[[Any], Any]:
    """Return a decorator that adds options for the settings of a record.

    With `names` it adds options for these settings only. Without, it adds options for the frequent settings and `--set`
    for all. The command gets the typed settings as `settings`.
    """
    frequent = names or [name for name, field in record.model_fields.items() if traits(field).option]
    seldom = [name for name in record.model_fields if name not in frequent]
    text = f"Any setting; repeatable. Settings without an option of their own: {', '.join(seldom)}."

    def decorate(function: Any) -> Any:
        @wraps(function)
        def with_settings(*, others: Sequence[str] = (), **options: Any) -> Any:
            texts: dict[str, list[str]] = {}
            for name in frequent:
                value = options.pop(name)
                texts[name] = [] if value is None else list(value) if isinstance(value, tuple) else [value]
            for name, value in map(partial(_set, record), others):
                texts.setdefault(name, []).append(value)
            texts |= {name: list(map(from_caller, texts[name])) for name in OF_CALLER if name in texts}
            return function(settings=record.parsed(texts), **options)

        command: Any = with_settings
        if not names:
            command.record = record
            command = click.option(
                "--set", "others", multiple=True, metavar="NAME=VALUE", allow_from_autoenv=False, help=text
            )(command)
        for name in reversed(frequent):
            command = _setting_option(name, record.model_fields[name], own_variable=bool(names))(command)
        return command

    return decorate


def fields_of(command: click.Command) -> Mapping[str, FieldInfo]:
    """Return the settings of a command's record."""
    record: type[Config] | None = getattr(command.callback, "record", None)
    return record.model_fields if record else {}


def _set(record: type[Config], pair: str) -> tuple[str, str]:
    """Return the name and the text of a setting. Errors do not repeat the text: it may be a secret."""
    name, sign, text = pair.partition("=")
    name = name.strip().replace("-", "_")
    if not sign:
        raise UsageError("--set: one has no `=`; write NAME=VALUE")
    if name not in record.model_fields:
        raise UsageError(f"--set: there is no setting `{name[:80]}`; {did_you_mean(name, record.model_fields)}")
    return name, text


def _setting_option(name: str, field: FieldInfo, *, own_variable: bool) -> Callable[[Any], Any]:
    """Return the option of a setting. Its value is a text, which the record converts and checks."""
    kind, default, several = field.annotation, field.default, takes_several(field)
    shown = ",".join(default) if several else f"{default:g}" if kind is float else str(default)
    shown = "" if default is None or kind is bool else shown
    numbers = {int: "INTEGER", int | None: "INTEGER", float: "FLOAT", float | None: "FLOAT"}
    flag: dict[str, Any] = {"is_flag": True, "flag_value": "true"} if kind is bool else {}
    return click.option(
        *traits(field).option.split(),
        name,
        multiple=several,
        help=f"{field.description}{f'  [default: {shown}]' if shown else ''}",
        type=click.Choice(get_args(kind)) if get_origin(kind) is Literal else str,
        metavar=numbers.get(kind),  # type: ignore[arg-type]
        allow_from_autoenv=own_variable,
        **flag,
        **in_group(traits(field).group),
    )


def from_caller(name: str) -> str:
    """Return the name, with a path that exists only in the folder where `mlflow run` was called.

    The name is a file, ``recorded:FILE`` or ``bm25:DIR``. MLflow changes to the project's folder;
    `scripts/mlproject.sh` sets EVALTRACK_CALLER_FOLDER to the caller's.
    """
    caller = os.environ.get("EVALTRACK_CALLER_FOLDER")
    kind, colon, place = name.rpartition(":")
    path, question_mark, settings = place.partition("?")
    if not caller or kind not in ("", "recorded", "bm25") or not path or Path(path).exists():
        return name
    there = Path(caller) / path
    return f"{kind}{colon}{there}{question_mark}{settings}" if there.exists() else name


def defaults_of(command: click.Command, table: Mapping[str, Any], place: str) -> dict[str, Any]:
    """Return the option defaults in a table of the settings file. Commands of a group are tables in it.

    Raises:
        UsageError: a name is no option; the message suggests the nearest.
    """
    is_group, fields, defaults = isinstance(command, click.Group), fields_of(command), dict[str, Any]()
    options = {str(each.name): each for each in command.params if isinstance(each, click.Option)}
    known: Mapping[str, Any] = command.commands if isinstance(command, click.Group) else options
    for name, value in table.items():
        where = table_place(place)
        if name not in known and name not in fields:
            hint = did_you_mean(name, {*known, *fields})
            raise UsageError(f"{where} has no {'command' if is_group else 'option'} `{name}`; {hint}")
        if is_group and not isinstance(value, dict):
            raise UsageError(f"{where} {name} is not a table; write its options under [{place}.{name}]")
        if is_group:
            defaults[name] = defaults_of(known[name], underscored(value), f"{place}.{name}")
        elif name not in fields:
            texts = list(map(str, value)) if isinstance(value, list) else [str(value)]
            defaults[name] = texts if options[name].multiple else str(value)
    return defaults
