"""Settings files: `evaltrack.toml`, or `[tool.evaltrack]` in `pyproject.toml`, in the working directory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

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
