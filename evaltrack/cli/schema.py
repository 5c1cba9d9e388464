"""`evaltrack schema`."""

from __future__ import annotations

import difflib
import json

import click

from evaltrack.cli.output import print_json_text
from evaltrack.errors import UsageError

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
    from evaltrack.cli.settings_schema import settings_schema
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
