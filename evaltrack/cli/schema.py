"""`evaltrack schema`."""

from __future__ import annotations

import difflib
import json
from typing import Any

import click
from annotated_types import Ge, Gt, Le
from pydantic.fields import FieldInfo

from evaltrack.cli.output import print_json_text
from evaltrack.compare.config import ComparisonConfig
from evaltrack.errors import UsageError
from evaltrack.evaluation.config import EvaluationConfig
from evaltrack.report.schemas.form import headed

EXAMPLES = """\b
Examples:
  evaltrack schema                                lists the names
  evaltrack schema golden > golden.schema.json    for an editor, or a check of one's own
"""


@click.command(epilog=EXAMPLES)
@click.argument("name", default="")
def schema(name: str) -> None:
    """Print the JSON Schema called NAME, or the names of all: files that people write, and each --output json."""
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


FIELDS = {"run": EvaluationConfig.model_fields, "compare": ComparisonConfig.model_fields}
"""The commands of whose options a record knows the bounds."""


def settings_schema(group: click.Group) -> dict[str, Any]:
    """The schema of `evaltrack.toml`, and of `[tool.evaltrack]` in `pyproject.toml`: a table for each command."""
    schema = _table(group) | {"description": "Settings: a table for each command, its options without the dashes."}
    return headed(schema, "settings", "Settings of evaltrack: evaltrack.toml")


def _table(command: click.Command) -> dict[str, Any]:
    if isinstance(command, click.Group):
        context = click.Context(command)
        commands = {name: command.get_command(context, name) for name in command.list_commands(context)}
        fields = {name: _table(each) for name, each in commands.items() if each is not None}
    else:
        fields = {}
        for option in command.params:
            if isinstance(option, click.Option) and option.name and not option.is_eager:
                fields |= _spellings(option.name, _field(option, FIELDS.get(command.name or "", {}).get(option.name)))
    described = {"description": " ".join((command.help or "").partition("\n\n")[0].split())} if command.help else {}
    return {"type": "object", **described, "properties": fields, "additionalProperties": False}


def _spellings(name: str, field: dict[str, Any]) -> dict[str, Any]:
    """An option may be written with `_` and with `-`."""
    return {name: field} | ({name.replace("_", "-"): field} if "_" in name else {})


def _field(option: click.Option, record: FieldInfo | None) -> dict[str, Any]:
    kind = _kind(option) | _bounds(record)
    if option.multiple:
        kind = {"anyOf": [kind, {"type": "array", "items": kind}]}
    default = list(option.default) if isinstance(option.default, tuple) else option.default
    shown = {"default": default} if isinstance(default, str | int | float) and default != "" else {}
    return kind | ({"description": option.help} if option.help else {}) | shown


def _kind(option: click.Option) -> dict[str, Any]:
    kind = option.type
    if option.is_flag and option.is_bool_flag:
        return {"type": "boolean"}
    if isinstance(kind, click.Choice):
        return {"enum": list(kind.choices)}
    if isinstance(kind, click.IntRange | click.FloatRange):
        name = "integer" if isinstance(kind, click.IntRange) else "number"
        return {"type": name} | _known(minimum=kind.min, maximum=kind.max)
    numbers = {click.INT: "integer", click.FLOAT: "number"}
    return {"type": numbers.get(kind, "string")}


def _bounds(record: FieldInfo | None) -> dict[str, Any]:
    """The bounds of a number that the record of settings knows."""
    if record is None or record.annotation not in (int, float):
        return {}
    bounds = {type(each): each for each in record.metadata}
    least, above, most = bounds.get(Ge), bounds.get(Gt), bounds.get(Le)
    return _known(minimum=least and least.ge, exclusiveMinimum=above and above.gt, maximum=most and most.le)


def _known(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}
