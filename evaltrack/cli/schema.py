"""`evaltrack schema`."""

from __future__ import annotations

import click

from evaltrack.cli.output import print_json_text

EXAMPLES = """\b
Examples:
  evaltrack schema                                lists the names
  evaltrack schema golden > golden.schema.json    for an editor, or a check of one's own
"""


@click.command(epilog=EXAMPLES)
@click.argument("name", default="")
def schema(name: str) -> None:
    """Print the JSON Schema called NAME, or the names of all: files that people write, and each --output json."""
    from evaltrack.api.json_schemas import json_schema, schema_names, schema_text

    if name:
        print_json_text(schema_text(name))
        return
    for each in schema_names():
        click.echo(f"{each:<12} {json_schema(each)['title']}")
