"""What the settings file and the environment say of the options of a command that are no settings of a record."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from typing import Any

import click

from evaltrack.cli.options import fields_of, own_options
from evaltrack.errors import UsageError
from evaltrack.evaluation.settings_sources import table_place, underscored
from evaltrack.records.config import did_you_mean

OTHER_VARIABLES = frozenset({"EVALTRACK_UI_URL"})
"""Variables that begin as those of a command's options do."""


def defaults_of(command: click.Command, table: Mapping[str, Any], place: str) -> dict[str, Any]:
    """The defaults of options in a table of the settings file; those of a group's commands are tables in it.

    Raises:
        UsageError: a name is no option, with the nearest that there is, or a value is of another type.
    """
    if isinstance(command, click.Group):
        for name, below in table.items():
            if name not in command.commands:
                nearest = did_you_mean(name, command.commands)
                raise UsageError(f"{table_place(place)} has no command `{name}`; {nearest}")
            if not isinstance(below, dict):
                cure = f"write its options under [{place}.{name}]"
                raise UsageError(f"{table_place(place)} {name} is no table; {cure}")
        return {
            name: defaults_of(command.commands[name], underscored(below), f"{place}.{name}")
            for name, below in table.items()
        }
    options, fields = own_options(command), fields_of(command)
    for name in table:
        if name not in options and name not in fields:
            nearest = did_you_mean(name, {*options, *fields})
            raise UsageError(f"{table_place(place)} has no option `{name}`; {nearest}")
    return {
        name: _default(options[name], value, f"{table_place(place)} {name}")
        for name, value in table.items()
        if name not in fields
    }


def _default(option: click.Option, value: Any, place: str) -> Any:
    """The value, as a list of one where an option can be repeated and only one is given."""
    values = value if option.multiple and isinstance(value, list) else [value]
    types: tuple[type, ...]
    if option.is_flag:
        types, wanted = (bool,), "true or false"
    elif isinstance(option.type, click.types.IntParamType):
        types, wanted = (int,), "a whole number"
    elif isinstance(option.type, click.types.FloatParamType):
        types, wanted = (int, float), "a number"
    else:
        types, wanted = (str, int, float), "a text"
    for each in values:
        if type(each) not in types or (isinstance(each, float) and not isfinite(each)):
            shown = "a list" if isinstance(each, list) else "a table" if isinstance(each, dict) else str(each).lower()
            raise UsageError(f"{place} is {shown}; write {wanted}")
    return values if option.multiple else value


def check_environment(environment: Mapping[str, str], command: click.Command) -> None:
    """Refuse variables that look like options of a command, and are none.

    Raises:
        UsageError: the message names the first one, with the nearest that there is.
    """
    if isinstance(command, click.Group):  # its name may begin that of a variable for all commands
        return
    prefix = f"EVALTRACK_{str(command.name).upper()}_"
    names = {
        f"{prefix}{name.upper()}" for name in own_options(command).keys() | fields_of(command).keys()
    } | OTHER_VARIABLES
    for name in sorted(environment):
        if name.startswith(prefix) and name not in names:
            raise UsageError(f"{name}: `{command.name}` has no such option; {did_you_mean(name, names)}")
