"""Settings files: `evaltrack.toml`, or `[tool.evaltrack]` in `pyproject.toml`, in the working directory."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import click

from evaltrack.errors import UsageError


def read_settings(folder: Path = Path()) -> dict[str, Any]:
    """Defaults by command, e.g. ``{"run": {"k": 10}}``; empty where there is no file.

    Raises:
        UsageError: a file is no TOML, or a table is missing where one belongs.
    """
    own, project = folder / "evaltrack.toml", folder / "pyproject.toml"
    if own.is_file():
        return _tables(own, _toml(own))
    if project.is_file() and b"[tool.evaltrack" in project.read_bytes():
        return _tables(project, _toml(project).get("tool", {}).get("evaltrack", {}))
    return {}


def check_settings(settings: Mapping[str, Any], commands: Collection[str], command: click.Command) -> None:
    """Refuse tables of no command, and settings that the command being called does not know.

    Raises:
        UsageError: the message names the first one, with the nearest that there is.
    """
    for table in settings:
        if table not in commands:
            raise UsageError(f"settings: there is no command `{table}`; {_nearest(table, commands)}")
    known = {str(parameter.name) for parameter in command.params}
    for name in settings.get(command.name or "", {}):
        if known and name not in known and not isinstance(command, click.Group):
            raise UsageError(f"settings: `{command.name}` has no option `{name}`; {_nearest(name, known)}")


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


def _nearest(name: str, known: Collection[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    return f"did you mean `{near[0]}`?" if near else f"known: {', '.join(sorted(known))}"


def _toml(path: Path) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise UsageError(f"{path}: is not TOML: {error}") from None


def _tables(path: Path, settings: dict[str, Any]) -> dict[str, Any]:
    for command, options in settings.items():
        if not isinstance(options, dict):
            raise UsageError(f"{path}: `{command}` stands outside of a table; write it under its command, e.g. [run]")
    return {
        command: {name.replace("-", "_"): v for name, v in options.items()} for command, options in settings.items()
    }
