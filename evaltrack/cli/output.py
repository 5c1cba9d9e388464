"""What a command prints on stdout: for people or for machines."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def output_option(*others: str) -> Callable[[Any], Any]:
    """`--output table|json`, and other forms that a command has."""
    return click.option(
        "--output",
        default="table",
        show_default=True,
        type=click.Choice(["table", "json", *others]),
        help="What is printed on stdout.",
    )
