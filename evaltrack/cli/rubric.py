"""Defines `evaltrack rubric`, which prints the reasoning rubric."""

from __future__ import annotations

import sys

import click

from evaltrack.cli.options import output_option
from evaltrack.cli.output import print_json


@click.command()
@click.option("--rubric-weights", default="", help="Other weights, as in `run`: h_count=0.3,oscillation=0.1.")
@output_option("markdown")
def rubric(rubric_weights: str, output: str) -> None:
    """Show the reasoning rubric: dimensions, anchors, hard fails, coupling, tiers, gates and aims.

    \b
    Examples:
      evaltrack rubric
      evaltrack rubric --output markdown > rubric.md
      evaltrack rubric --rubric-weights h_count=0.3,oscillation=0.1 --output json

    People who label responses grade by the same anchors as an LLM that judges with `--rubric reasoning`.
    """
    from rich.console import Console
    from rich.markdown import Markdown

    from evaltrack.metrics.rubric_tables import reasoning_rubric
    from evaltrack.report.judges import rubric_json, rubric_markdown

    table = reasoning_rubric(rubric_weights)
    if output == "json":
        print_json(rubric_json(table))
    elif output == "markdown":
        click.echo(rubric_markdown(table))
    else:
        Console(file=sys.stdout).print(Markdown(rubric_markdown(table)))
