"""Prints results as tables or JSON, names options in messages, and breaks commands of CI runners in the output."""

from __future__ import annotations

import os
import re
import stat
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, cast

import click

from evaltrack.errors import EXIT_INCONCLUSIVE
from evaltrack.report.escaping import json_document, without_any_commands

if TYPE_CHECKING:
    from rich.console import Console


def wants_json(output: str) -> bool:
    """Return True if stdout gets JSON: by choice, or with `auto` if it is a file."""
    return output == "json" or (output == "auto" and is_file(sys.stdout))


def is_file(stream: TextIO) -> bool:
    """Return True if a stream writes to a file, not to a terminal or a pipe."""
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):  # closed, or without a descriptor
        return False


class CommandlessStream:
    """A text stream that writes no line that a CI runner reads as a command.

    If the stream cannot be written (`| head`, a full disk), the rest of the output is dropped. `problem` holds the
    reason, but not for a closed pipe.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self.problem = ""
        self.stream = _nowhere() if stream is None else stream
        if isinstance(self.stream, TextIOWrapper):
            self.stream.reconfigure(encoding="utf-8", errors="replace")

    def write(self, text: str) -> int:
        """Write the text. Each call counts as the beginning of a line."""
        self.write_as_it_is(without_any_commands(text))
        return len(text)

    def write_as_it_is(self, text: str) -> None:
        """Write text that a CI runner may read as a command."""
        try:
            self.stream.write(text)
        except OSError as error:
            self._drop_rest(error)

    def flush(self) -> None:
        """Flush the stream."""
        try:
            self.stream.flush()
        except OSError as error:
            self._drop_rest(error)

    def _drop_rest(self, error: OSError) -> None:
        if not isinstance(error, BrokenPipeError):
            self.problem = self.problem or str(error.strerror)
        with Path(os.devnull).open("wb") as nothing:
            os.dup2(nothing.fileno(), self.stream.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


@contextmanager
def commandless_output() -> Iterator[None]:
    """Keep CI commands out of stdout and stderr, except those of `print_command`."""
    before = sys.stdout, sys.stderr
    sys.stdout, sys.stderr = own = [cast("TextIO", CommandlessStream(stream)) for stream in before]
    try:
        yield
    finally:
        for stream in own:
            stream.flush()  # at exit it is too late to handle a closed pipe
        sys.stdout, sys.stderr = before


def code_after_output(code: int) -> int:
    """Return the exit code after the output is written. Incomplete output is no success: the next step may read it.

    A reader that closes the pipe (`| head`) is no error.
    """
    sys.stdout.flush()
    if not isinstance(sys.stdout, CommandlessStream) or not sys.stdout.problem:
        return code
    click.echo(f"stdout could not be written: {sys.stdout.problem}; the output is incomplete", err=True)
    return code or EXIT_INCONCLUSIVE


def print_command(line: str, *, err: bool) -> None:
    """Print a line that a CI runner is meant to read."""
    stream = sys.stderr if err else sys.stdout
    if isinstance(stream, CommandlessStream):
        stream.write_as_it_is(f"{line}\n")
    else:
        click.echo(line, file=stream)


def print_result_as(
    output: str,
    table: Callable[[Console], None],
    json_pieces: Callable[[], Iterable[str]],
    markdown: Callable[[], str] | None = None,
) -> None:
    """Print a result on stdout in the form that `--output` names: a table for people, JSON, or Markdown."""
    if wants_json(output):
        for piece in json_pieces():
            click.echo(piece, nl=False)
    elif markdown is not None and output == "markdown":
        click.echo(markdown())
    else:
        from rich.console import Console

        table(Console(file=sys.stdout))


def say(text: str) -> None:
    """Print a message on progress to stderr."""
    click.echo(text, err=True)


def print_json(value: object) -> None:
    """Print a value as JSON."""
    click.echo(json_document(value), nl=False)


NAMES = ("baseline_run", "corpus", "draft", "encoding", "force", "id_prefix", "port", "resume", "retry_errors", "why")
OTHERS = {name: f"--{name.replace('_', '-')}" for name in NAMES} | {
    "baseline_file": "--baseline",
    "fields": "--map",
    "form": "--from",
}
"""Options for arguments that are not settings of a record."""


def with_options(message: str) -> str:
    """Return the message with its settings written as options.

    Messages name a setting as in a Python call, in backticks: ``name one with `judge=` ``. This becomes ``name one with
    --judge``, and `retry_errors=True` becomes ``--retry-errors``. Other text in backticks does not change.
    """
    return re.sub(r"`([a-z][a-z_]*)=([^`]*)`", _option, message)


def _option(match: re.Match[str]) -> str:
    name, value = match.groups()
    option = _options().get(name)
    if option is None:
        return match[0]
    if option.startswith("--set "):
        return f"{option}={value}" if value else option
    return option if value in ("", "True") else f"{option} {value}"


def _options() -> dict[str, str]:
    from evaltrack.compare.gate import ComparisonConfig
    from evaltrack.evaluation.settings import EvaluationConfig
    from evaltrack.records.config import traits

    fields = [*EvaluationConfig.model_fields.items(), *ComparisonConfig.model_fields.items()]
    by_set = {name: f"--set {name}" for name, _ in fields}
    return by_set | {n: traits(field).option.split()[-1] for n, field in fields if traits(field).option} | OTHERS
