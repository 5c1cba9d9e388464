"""Defines `evaltrack schema`, which prints the JSON Schema of a file that evaltrack reads or writes."""

from __future__ import annotations

import json

import click

from evaltrack.cli.output import print_json_text
from evaltrack.errors import UsageError
from evaltrack.records.config import did_you_mean


@click.command()
@click.argument("name", default="")
def schema(name: str) -> None:
    """Print the JSON Schema called NAME, or list the names of all.

    \b
    Examples:
      evaltrack schema                                lists the names
      evaltrack schema golden > golden.schema.json    for an editor, or for your own checks
    """
    from evaltrack.report.schemas import made_schemas

    schemas = made_schemas()
    if not name:
        for each, made in sorted(schemas.items()):
            click.echo(f"{each:<12} {made['title']}")
    elif name in schemas:
        print_json_text(json.dumps(schemas[name], ensure_ascii=False, indent=1) + "\n")
    else:
        raise UsageError(f"no schema is called `{name}`; {did_you_mean(name, schemas)}")
