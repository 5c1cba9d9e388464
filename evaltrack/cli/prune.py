"""`evaltrack prune`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from evaltrack.cli.output import output_option, print_json
from evaltrack.privacy.addresses import shown_text
from evaltrack.records.amount import count

if TYPE_CHECKING:
    from evaltrack.api.prune import Pruning

EXAMPLES = """\b
Examples:
  evaltrack prune --older-than 90d          lists what would go
  evaltrack prune --older-than 90d --yes    removes it
"""
KEEP_HELP = "Leave alone what a baseline, a tag or a comparison names. Always so; the option only says it."
SHOWN = 50


@click.command(epilog=EXAMPLES)
@click.option("--older-than", default="90d", show_default=True, help="Last written so long ago: hours, days or weeks.")
@click.option("--keep-baselines", is_flag=True, default=True, help=KEEP_HELP)
@click.option("--experiment", default="", help="MLflow experiment.  [default: all of them]")
@click.option("--yes", is_flag=True, help="Remove it; else it is only listed.")
@output_option()
def prune(older_than: str, keep_baselines: bool, experiment: str, yes: bool, output: str) -> None:  # noqa: ARG001
    """Remove old journals, the cache of verdicts and the heavy artifacts of old runs; without --yes list them.

    Params, metrics, tags and summary of a run stay. A run that is or was a baseline, that was compared, that a tag
    names or that has a tag of your own is not touched.
    """
    from evaltrack.api.prune import prune as prune_old

    pruning = prune_old(older_than, yes=yes, experiment=experiment or None, say=_warn)
    if output == "json":
        print_json({**asdict(pruning), "bytes": pruning.bytes})
        return
    _print(pruning)


def _print(pruning: Pruning) -> None:
    for item in pruning.items[:SHOWN]:
        click.echo(f"{item.kind:9}  {item.bytes:>15,} bytes  {item.last}  {shown_text(item.name)}")
    if (more := len(pruning.items) - SHOWN) > 0:
        click.echo(f"... and {more:,} more")
    for reason, number in pruning.reasons_to_keep.items():
        click.echo(f"left alone: {number:,} ({reason})")
    outcome = "removed" if pruning.done else "would be removed; --yes removes them"
    click.echo(f"{len(pruning.items):,} older than {pruning.older_than}, {count(pruning.bytes, 'byte')}: {outcome}")


def _warn(text: str) -> None:
    click.secho(f"Warning: {shown_text(text)}", err=True, fg="yellow")
