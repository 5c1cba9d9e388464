"""Defines `evaltrack schema`, which prints JSON Schemas."""

from __future__ import annotations

import difflib
import json
from typing import Any

import click

from evaltrack.cli.options import own_options, record_of
from evaltrack.cli.output import print_json_text
from evaltrack.errors import UsageError
from evaltrack.report.schemas.form import headed

EXAMPLES = """\b
Examples:
  evaltrack schema                                lists the names
  evaltrack schema golden > golden.schema.json    for an editor, or for your own checks
"""


@click.command(epilog=EXAMPLES)
@click.argument("name", default="")
def schema(name: str) -> None:
    """Print the JSON Schema called NAME, or list the names of all."""
    from evaltrack.cli import cli
    from evaltrack.report.schemas import made_schemas

    schemas = {**made_schemas(), "settings": settings_schema(cli)}
    if not name:
        for each, made in sorted(schemas.items()):
            click.echo(f"{each:<12} {made['title']}")
    elif name in schemas:
        print_json_text(json.dumps(schemas[name], ensure_ascii=False, indent=1) + "\n")
    else:
        near = difflib.get_close_matches(name, schemas, n=1)
        hint = f"did you mean `{near[0]}`?" if near else f"there are {', '.join(sorted(schemas))}"
        raise UsageError(f"no schema is called `{name}`; {hint}")


def settings_schema(group: click.Group) -> dict[str, Any]:
    """Return the schema of `evaltrack.toml` and of `[tool.evaltrack]`, with a table for each command."""
    schema = _table(group) | {"description": "Settings: a table for each command, its options without the dashes."}
    return headed(schema, "settings", "Settings of evaltrack: evaltrack.toml")


def _table(command: click.Command) -> dict[str, Any]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        commands = {name: command.get_command(context, name) for name in command.list_commands(context)}
        fields = {name: _table(each) for name, each in commands.items() if each is not None}
    else:
        fields = {}
        record = record_of(command)
        for name, option in own_options(command).items():
            fields |= _spellings(name, _field(option))
        for name, field in (record.model_json_schema()["properties"] if record else {}).items():
            fields |= _spellings(name, _setting(field))
    described = {"description": " ".join((command.help or "").partition("\n\n")[0].split())} if command.help else {}
    return {"type": "object", **described, "properties": fields, "additionalProperties": False}


def _spellings(name: str, field: dict[str, Any]) -> dict[str, Any]:
    """Return the field under both spellings of its name, with `_` and with `-`."""
    return {name: field} | ({name.replace("_", "-"): field} if "_" in name else {})


def _field(option: click.Option) -> dict[str, Any]:
    kind = _kind(option)
    if option.multiple:
        kind = _repeated(kind)
    shown = (
        {"default": option.default} if isinstance(option.default, str | int | float) and option.default != "" else {}
    )
    return kind | ({"description": option.help} if option.help else {}) | shown


def _setting(field: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a setting. One text may replace a list, and NAME=VALUE texts may replace a table."""
    field = {key: value for key, value in field.items() if key not in ("title", "traits")}
    kind = field.pop("type", None)
    if kind == "array":
        return field | _repeated(field.pop("items"))
    if kind == "object":
        return field | {"anyOf": [{"type": "object"}, *_repeated({"type": "string"})["anyOf"]]}
    return field | ({"type": kind} if kind else {})


def _repeated(kind: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [kind, {"type": "array", "items": kind}]}


def _kind(option: click.Option) -> dict[str, Any]:
    kind = option.type
    if option.is_flag and option.is_bool_flag:
        return {"type": "boolean"}
    if isinstance(kind, click.Choice):
        return {"enum": list(kind.choices)}
    if isinstance(kind, click.IntRange | click.FloatRange):
        bounds = {"minimum": kind.min, "maximum": kind.max}
        name = "integer" if isinstance(kind, click.IntRange) else "number"
        return {"type": name} | {bound: value for bound, value in bounds.items() if value is not None}
    numbers = {click.INT: "integer", click.FLOAT: "number"}
    return {"type": numbers.get(kind, "string")}
