"""Prints results as tables or JSON, names options in messages, and breaks commands of CI runners in the output."""

from __future__ import annotations

import codecs
import json
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
from evaltrack.metrics.metric import MINUS
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

    If the stream cannot be written (`| head`, a full disk, a closed descriptor), the rest of the output is dropped.
    `problem` holds the reason, but not for a closed pipe.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self.problem = ""
        self.is_closed = stream is None
        self.stream = _nowhere() if stream is None else stream

    def write(self, text: str) -> int:
        """Write the text. Each call counts as the beginning of a line."""
        self.write_as_it_is(without_any_commands(text))
        return len(text)

    def write_as_it_is(self, text: str) -> None:
        """Write text that a CI runner may read as a command."""
        if self.is_closed:
            self.problem = "it is closed"
        with self._written_or_nowhere():
            self.stream.write(text)

    def flush(self) -> None:
        """Flush the stream."""
        with self._written_or_nowhere():
            self.stream.flush()

    @contextmanager
    def _written_or_nowhere(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError) as error:
            if isinstance(error, ValueError) and not self.stream.closed:
                raise
            self._give_up(error)

    def _give_up(self, error: OSError | ValueError) -> None:
        if not isinstance(error, BrokenPipeError):
            self.problem = self.problem or getattr(error, "strerror", None) or str(error)
        try:
            descriptor = self.stream.fileno()
        except (OSError, ValueError):  # closed, or without a descriptor
            self.stream = _nowhere()
            return
        with Path(os.devnull).open("wb") as nothing:
            os.dup2(nothing.fileno(), descriptor)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def _nowhere() -> TextIO:
    return Path(os.devnull).open("w", encoding="utf-8")


@contextmanager
def commandless_output() -> Iterator[None]:
    """Keep CI commands out of stdout and stderr, except those of `print_command`."""
    _open_closed_descriptors()
    before = sys.stdout, sys.stderr
    for stream in before:
        _replace_what_cannot_be_written(stream)
    sys.stdout, sys.stderr = own = [cast("TextIO", CommandlessStream(stream)) for stream in before]
    try:
        yield
    finally:
        for stream in own:
            stream.flush()  # at exit it is too late to handle a closed pipe
        sys.stdout, sys.stderr = before


def _open_closed_descriptors() -> None:
    """Open stdin, stdout and stderr if they are closed. Otherwise the next opened file takes their place."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # takes the lowest free number


def code_after_output(code: int) -> int:
    """Return the exit code after the output is written. Incomplete output is no success: the next step may read it.

    A reader that closes the pipe (`| head`) is no error.
    """
    sys.stdout.flush()
    if not isinstance(sys.stdout, CommandlessStream) or not sys.stdout.problem:
        return code
    click.echo(f"stdout could not be written: {sys.stdout.problem}; the output is incomplete", err=True)
    return code or EXIT_INCONCLUSIVE


def _replace_what_cannot_be_written(stream: TextIO | None) -> None:
    """Replace characters that the output's encoding lacks by ASCII signs or `?`."""
    if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
        stream.reconfigure(errors=TEXT_ESCAPES)


IN_ASCII = {MINUS: "-", "→": "->", "≈": "~", "✕": "x", "✓": "v", "…": "...", "×": "x", "·": "-", "–": "-"}
"""ASCII forms of signs that carry a meaning."""


def _ascii_signs(error: UnicodeError) -> tuple[str, int]:
    """Return ASCII signs or question marks for the characters that cannot be encoded."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(IN_ASCII.get(each, "?") for each in error.object[error.start : error.end]), error.end


TEXT_ESCAPES = "evaltrack.text"
codecs.register_error(TEXT_ESCAPES, _ascii_signs)


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
            print_json_text(piece)
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
    print_json_text(json_document(value))


def print_json_text(text: str) -> None:
    """Print JSON or a piece of it. Where the output is not in UTF-8, characters that ASCII lacks are escaped."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    if codecs.lookup(encoding).name != "utf-8":
        text = re.sub(r"[^\x00-\x7f]+", lambda found: json.dumps(found[0])[1:-1], text)
    click.echo(text, nl=False)


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
