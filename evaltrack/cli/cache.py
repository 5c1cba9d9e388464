"""Defines `evaltrack cache`, which clears cached verdicts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from evaltrack.records.base import count

if TYPE_CHECKING:
    from evaltrack.judges.cache import CacheSize


@click.group()
def cache() -> None:
    """Clear cached verdicts."""


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
