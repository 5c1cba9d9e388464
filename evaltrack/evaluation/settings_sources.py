"""Merges a command's settings (run, compare, ...): the call's own, then environment variables, then settings file.

The settings file is `evaltrack.toml`, or `[tool.evaltrack]` in `pyproject.toml`, in the working directory; or the file
that EVALTRACK_CONFIG names.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from evaltrack.errors import UsageError
from evaltrack.records.config import Config, takes_several

Settings = TypeVar("Settings", bound=Config)

OF_TARGET = ("target_options", "model")
"""Settings that belong to one target only."""

FILE_VARIABLE, PROJECT = "EVALTRACK_CONFIG", "pyproject.toml"


def settings_of(record: type[Settings], given: Mapping[str, Any]) -> Settings:
    """Return the given settings of a call, completed from environment and settings file.

    If a source names a target, the target's settings from sources of lower precedence are ignored.

    Raises:
        UsageError: a value is invalid, or the settings file cannot be read.
        TypeError: a given name is no setting.
    """
    file, environment = _of_file(record), _of_environment(record)
    values: dict[str, Any] = {}
    for place in (file, environment, given):
        if place.get("target"):
            values = {name: value for name, value in values.items() if name not in OF_TARGET}
        values |= place
    try:
        return record.of(**values)
    except UsageError as error:
        variables = {f"{_variable(record, name)}:": {name: value} for name, value in environment.items()}
        places = {table_place(record.command): file, **variables, "environment:": environment}
        problems = str(error).split("\n")
        raise UsageError("\n".join(_with_place(record, places, each) for each in problems)) from None


def _with_place(record: type[Config], places: Mapping[str, Mapping[str, Any]], problem: str) -> str:
    """Return a problem with the source of the wrong value, unless that is the call."""
    for name, values in places.items():
        try:
            record.of(**values)
        except UsageError as error:
            if problem in str(error).split("\n"):
                return f"{name} {problem}"
    return problem


def _of_file(record: type[Config]) -> dict[str, Any]:
    table = read_settings().get(record.command, {})
    return {name: table[name] for name in _known(record, table, lambda name: f"{table_place(record.command)} {name}")}


def _of_environment(record: type[Config]) -> dict[str, Any]:
    """Return the values of variables such as EVALTRACK_RUN_K; blanks separate several."""
    prefix = _variable(record, "")
    variables = ((name, text) for name, text in os.environ.items() if name.startswith(prefix) and text)
    texts = {name.removeprefix(prefix).lower(): text for name, text in variables}
    fields = record.model_fields
    names = _known(record, texts, lambda name: _variable(record, name))
    return record.parsed({n: texts[n].split() if takes_several(fields[n]) else [texts[n]] for n in names})


def _variable(record: type[Config], name: str) -> str:
    return f"EVALTRACK_{record.command}_{name}".upper()


def _known(record: type[Config], names: Iterable[str], place: Callable[[str], str]) -> list[str]:
    """Return the names that are settings; others may be command options, unless they resemble a setting."""
    fields = record.model_fields
    for name in names:
        if name not in fields and (near := difflib.get_close_matches(name, fields, n=1, cutoff=0.8)):
            raise UsageError(f"{place(name)}: there is no such setting; did you mean `{near[0]}`?")
    return [name for name in names if name in fields]


def read_settings(folder: Path = Path()) -> dict[str, dict[str, Any]]:
    """Return settings by command, e.g. ``{"run": {"k": 10}}``; empty if there is no file.

    Raises:
        UsageError: a file is not TOML, a value is no table, the named file cannot be read, or another user put the file
            into a shared folder.
    """
    path = _file(folder)
    if not (path.is_file() or os.environ.get(FILE_VARIABLE)):
        return {}
    try:
        with path.open("rb") as file:
            owners, content = {os.fstat(file.fileno()).st_uid, path.lstat().st_uid}, file.read()
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
    if path.name == PROJECT and b"[tool.evaltrack" not in content:
        return {}
    _check_owner(path, owners)
    settings = parsed_toml(path, content)
    if path.name == PROJECT:
        tool = settings.get("tool", {})
        settings = tool.get("evaltrack", {}) if isinstance(tool, dict) else {}
    return _tables(path, settings)


def table_place(command: str) -> str:
    """Return the settings file and the table of a command in it, for messages: ``evaltrack.toml: [run]``."""
    path = _file()
    return f"{path}: [{'tool.evaltrack.' if path.name == PROJECT else ''}{command}]"


def _file(folder: Path = Path()) -> Path:
    if named := os.environ.get(FILE_VARIABLE):
        return Path(named)
    own = folder / "evaltrack.toml"
    return own if own.is_file() else folder / PROJECT


def parsed_toml(path: Path, content: bytes) -> dict[str, Any]:
    """Return the content of a TOML file.

    Raises:
        UsageError: it is not TOML.
    """
    import tomllib

    try:
        return tomllib.loads(content.decode("utf-8-sig"))
    except ValueError as error:
        raise UsageError(f"{path}: is not TOML: {error}") from None


def _check_owner(path: Path, owners: set[int]) -> None:
    """Refuse a file that another user put into a folder such as /tmp: a setting may name a command to execute."""
    others = owners - {0, path.parent.stat().st_uid}
    if not others:
        return
    if others - {os.geteuid()}:
        cure = "use a folder of your own, or take ownership of the file"
        raise UsageError(f"{path}: belongs to another user, who does not own the folder either; {cure}")


def _tables(path: Path, settings: object) -> dict[str, Any]:
    if not isinstance(settings, dict):
        raise UsageError(f"{path}: `evaltrack` is not a table; write settings under [tool.evaltrack.run]")
    for command, options in settings.items():
        if not isinstance(options, dict):
            raise UsageError(f"{path}: `{command}` is outside of any table; write it under its command, e.g. [run]")
    return {command: underscored(options) for command, options in settings.items()}


def underscored(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with `_` instead of `-` in their names."""
    return {name.replace("-", "_"): value for name, value in options.items()}
