"""Defines `evaltrack cache`, which shows and clears cached verdicts."""

from __future__ import annotations

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from evaltrack.cli.options import output_option
from evaltrack.cli.output import print_json
from evaltrack.records.amount import count

if TYPE_CHECKING:
    from evaltrack.judges.cache import CacheSize


@click.group()
def cache() -> None:
    """Show and clear cached verdicts."""


@cache.command()
@output_option()
def show(output: str) -> None:
    """Show the place, number and use of cached verdicts."""
    from evaltrack.judges.cache import cache_folder, measure_cache

    size = measure_cache(cache_folder())
    if output == "json":
        print_json({**asdict(size), "path": str(size.path)})
        return
    click.echo(f"{size.path}: {_amount(size)}")
    if size.problem:
        click.secho(f"it is not used: {size.problem}", err=True, fg="yellow")


@cache.command()
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def clear(yes: bool) -> None:
    """Remove all cached verdicts; the next run asks the judge again."""
    from evaltrack.judges.cache import cache_folder, clear_cache, measure_cache

    folder = cache_folder()
    if sys.stdin.isatty() and not yes:
        size = measure_cache(folder)
        click.confirm(f"{size.path}: remove {_amount(size)}?", abort=True)
    removed = clear_cache(folder)
    click.echo(f"{removed.path}: {_amount(removed)} removed")


def _amount(size: CacheSize) -> str:
    verdicts = "an unknown number of verdicts" if size.verdicts is None else count(size.verdicts, "verdict")
    return f"{verdicts} ({count(size.bytes, 'byte')})"
