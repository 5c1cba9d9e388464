"""What a command prints: for people or for machines, and never a command of a CI runner out of foreign text."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

import click

from evaltrack.report.runners import json_without_commands, without_any_commands


def output_option(*others: str) -> Callable[[Any], Any]:
    """`--output table|json`, and other forms that a command has."""
    return click.option(
        "--output",
        default="table",
        show_default=True,
        type=click.Choice(["table", "json", *others]),
        help="What is printed on stdout.",
    )


class CommandlessStream:
    """A text stream on which no line is a command of a CI runner, whoever writes it."""

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write the text; each call counts as the beginning of a line."""
        self.stream.write(without_any_commands(text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def commandless_output() -> Iterator[None]:
    """Meanwhile stdout and stderr hold no commands of CI runners but those of `print_command`."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = (cast("TextIO", CommandlessStream(stream)) for stream in before)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = before


def print_command(line: str, *, err: bool) -> None:
    """Print a line that a CI runner is meant to read."""
    stream = sys.stderr if err else sys.stdout
    click.echo(line, file=stream.stream if isinstance(stream, CommandlessStream) else stream)


def print_json(value: object) -> None:
    """Print a value for machines."""
    click.echo(json_without_commands(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2)))
