"""JSON Schemas of the files that evaltrack reads and of what it prints for machines, as they come with the package."""

from __future__ import annotations

import difflib
import json
from importlib.resources import files
from typing import Any

from evaltrack.errors import UsageError

PLACE = "evaltrack.api"


def schema_names() -> list[str]:
    """The names of all schemas."""
    folder = files(PLACE).joinpath("schemas")
    return sorted(each.name.removesuffix(".json") for each in folder.iterdir() if each.name.endswith(".json"))


def json_schema(name: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) called `name`, such as ``golden``, ``settings`` or ``comparison``.

    Raises:
        UsageError: there is none of that name.
    """
    schema: dict[str, Any] = json.loads(schema_text(name))
    return schema


def schema_text(name: str) -> str:
    """The same as text.

    Raises:
        UsageError: there is none of that name.
    """
    names = schema_names()
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(names)}"
        raise UsageError(f"no schema is called `{name}`; {hint}")
    return files(PLACE).joinpath("schemas", f"{name}.json").read_text(encoding="utf-8")
