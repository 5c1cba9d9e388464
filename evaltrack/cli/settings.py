"""Settings files: `evaltrack.toml`, or `[tool.evaltrack]` in `pyproject.toml`, in the working directory; or the
file that is named.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Collection, Mapping
from math import isfinite
from pathlib import Path
from typing import Any

import click

from evaltrack.errors import UsageError

OTHER_VARIABLES = frozenset({"EVALTRACK_UI_URL"})
"""Variables that begin as those of a command's options do."""

MAX_BYTES = 1 << 17
"""Of a settings file: Python's reader needs seconds for some of a few hundred thousand."""


def read_settings(folder: Path = Path(), named: Path | None = None) -> dict[str, Any]:
    """Defaults by command, e.g. ``{"run": {"k": 10}}``; empty where there is no file.

    Args:
        folder: Where `evaltrack.toml` and `pyproject.toml` are looked for.
        named: The file to read instead of these; one called `pyproject.toml` holds `[tool.evaltrack]`.

    Raises:
        UsageError: a file is no TOML, a table is missing where one belongs, the named file cannot be read, or
            another user put a file into a shared folder.
    """
    own, project = folder / "evaltrack.toml", folder / "pyproject.toml"
    if named is not None:
        return _of_project(named) if named.name == project.name else _tables(named, _toml(named))
    if own.is_file():
        return _tables(own, _toml(own))
    return _of_project(project) if project.is_file() else {}


def _of_project(path: Path) -> dict[str, Any]:
    if b"[tool.evaltrack" not in _content(path):
        return {}
    tool = _toml(path).get("tool", {})
    return _tables(path, tool.get("evaltrack", {}) if isinstance(tool, dict) else {})


def check_settings(settings: Mapping[str, Any], commands: Collection[str], command: click.Command) -> None:
    """Refuse tables of no command, and settings that the command being called does not know.

    Raises:
        UsageError: the message names the first one, with the nearest that there is.
    """
    for table in settings:
        if table not in commands:
            raise UsageError(f"settings: there is no command `{table}`; {_nearest(table, commands)}")
    _check_options(str(command.name), settings.get(command.name or "", {}), command)


def _check_options(name_of_table: str, options: Mapping[str, Any], command: click.Command) -> None:
    """Refuse what is neither an option of the command nor, below a group, a table of one of its commands."""
    if isinstance(command, click.Group):
        for name, below in options.items():
            if name not in command.commands:
                raise UsageError(
                    f"settings: `{name_of_table}` has no command `{name}`; {_nearest(name, command.commands)}"
                )
            if not isinstance(below, dict):
                raise UsageError(
                    f"settings: `{name_of_table}.{name}` is no table; write its options under [{name_of_table}.{name}]"
                )
            _check_options(f"{name_of_table}.{name}", below, command.commands[name])
        return
    parameters = {str(parameter.name): parameter for parameter in command.params}
    for name, value in options.items():
        if parameters and name not in parameters:
            raise UsageError(f"settings: `{name_of_table}` has no option `{name}`; {_nearest(name, parameters)}")
        repeatable = bool(getattr(parameters.get(name), "multiple", False))
        for each in value if repeatable and isinstance(value, list) else [value]:
            if isinstance(each, bool) and not getattr(parameters.get(name), "is_flag", True):
                raise UsageError(f"settings: `{name_of_table}.{name}` is {str(each).lower()}; write a text or a number")
            if isinstance(each, list | dict) or (isinstance(each, float) and not isfinite(each)):
                what = "a list" if isinstance(each, list) else "a table" if isinstance(each, dict) else "not finite"
                raise UsageError(f"settings: `{name_of_table}.{name}` is {what}; write a text, a number, true or false")


def check_environment(environment: Mapping[str, str], command: click.Command) -> None:
    """Refuse variables that look like options of a command, and are none.

    Raises:
        UsageError: the message names the first one, with the nearest that there is.
    """
    if isinstance(command, click.Group):  # its name may begin that of a variable for all commands
        return
    prefix = f"EVALTRACK_{str(command.name).upper()}_"
    names = {f"{prefix}{str(parameter.name).upper()}" for parameter in command.params} | OTHER_VARIABLES
    for name in sorted(environment):
        if name.startswith(prefix) and name not in names:
            raise UsageError(f"{name}: `{command.name}` has no such option; {_nearest(name, names)}")


def in_lists(settings: Mapping[str, Any], command: click.Command) -> dict[str, Any]:
    """The settings of a command with a list of one where an option can be repeated and only one value is given."""
    if isinstance(command, click.Group):
        below = {name: sub for name, sub in command.commands.items() if isinstance(settings.get(name), dict)}
        return {**settings, **{name: in_lists(settings[name], sub) for name, sub in below.items()}}
    repeatable = {parameter.name for parameter in command.params if getattr(parameter, "multiple", False)}
    return {
        name: [value] if name in repeatable and not isinstance(value, list | dict) else value
        for name, value in settings.items()
    }


def _nearest(name: str, names: Collection[str]) -> str:
    near = difflib.get_close_matches(name, names, n=1)
    return f"did you mean `{near[0]}`?" if near else f"known: {', '.join(sorted(names))}"


def _toml(path: Path) -> dict[str, Any]:
    import tomllib

    content = _content(path, trusted=True)
    if len(content) > MAX_BYTES:
        raise UsageError(f"{path}: is longer than {MAX_BYTES:,} bytes; write the settings to a short evaltrack.toml")
    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except ValueError as error:
        raise UsageError(f"{path}: is not TOML: {error}") from None
    except RecursionError:
        raise UsageError(f"{path}: is not TOML that can be read: it is nested too deep") from None


def _content(path: Path, *, trusted: bool = False) -> bytes:
    """What a file holds; `trusted` refuses it where its settings must not be followed."""
    try:
        with path.open("rb") as file:
            if trusted:
                _check_owner(path, {os.fstat(file.fileno()).st_uid, path.lstat().st_uid})
            return file.read()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None


def _check_owner(path: Path, owners: set[int]) -> None:
    """Refuse what another user put into a folder such as /tmp: a setting may name a command to execute."""
    others = owners - {0, path.parent.stat().st_uid}
    if not others:
        return
    if others - {os.geteuid()}:
        cure = "work in a folder of your own, or make the file yours"
        raise UsageError(f"{path}: belongs to another user, who does not own the folder either; {cure}")


def _tables(path: Path, settings: object) -> dict[str, Any]:
    if not isinstance(settings, dict):
        raise UsageError(f"{path}: `evaltrack` is no table; write [tool.evaltrack.run] above the settings of a command")
    for command, options in settings.items():
        if not isinstance(options, dict):
            raise UsageError(f"{path}: `{command}` stands outside of a table; write it under its command, e.g. [run]")
    return {command: _underscored(options) for command, options in settings.items()}


def _underscored(options: dict[str, Any]) -> dict[str, Any]:
    """Options as click names them, below the commands of a group too."""
    return {
        name.replace("-", "_"): _underscored(value) if isinstance(value, dict) else value
        for name, value in options.items()
    }
