"""What a command prints: for people or for machines, and never a command of a CI runner out of foreign text."""

from __future__ import annotations

import codecs
import json
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import Any, Literal, TextIO, cast

import click

from evaltrack.report.ci_commands import json_without_commands, without_any_commands


def output_option(*others: str, default: Literal["table", "auto"] = "table") -> Callable[[Any], Any]:
    """`--output table|json`, and other forms that a command has; by default `auto` is JSON where stdout is a file."""
    auto = default == "auto"
    return click.option(
        "--output",
        default=default,
        show_default=True,
        type=click.Choice([*["auto"] * auto, "table", "json", *others]),
        help="What is printed on stdout" + ("; auto: a table, or JSON where stdout is a file." if auto else "."),
    )


def wants_json(output: str) -> bool:
    """Whether stdout gets JSON: where that is asked for, and by default where it is a file."""
    return output == "json" or (output == "auto" and _is_file(sys.stdout))


def _is_file(stream: TextIO) -> bool:
    """Whether a stream writes into a file, and not to a terminal or a pipe."""
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):  # closed, or none of the system's
        return False


class CommandlessStream:
    """A text stream on which no line is a command of a CI runner, whoever writes it.

    Once nobody reads it any more (`| head`) the rest goes nowhere: what is printed decides nothing.
    """

    def __init__(self, stream: TextIO) -> None:
        self.stream = stream

    def write(self, text: str) -> int:
        """Write the text; each call counts as the beginning of a line."""
        self.write_as_it_is(without_any_commands(text))
        return len(text)

    def write_as_it_is(self, text: str) -> None:
        """Write what a CI runner is meant to read."""
        with self._unread():
            self.stream.write(text)

    def flush(self) -> None:
        """Pass on what was written."""
        with self._unread():
            self.stream.flush()

    @contextmanager
    def _unread(self) -> Iterator[None]:
        try:
            yield
        except BrokenPipeError:
            with Path(os.devnull).open("wb") as nothing:
                os.dup2(nothing.fileno(), self.stream.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


@contextmanager
def commandless_output() -> Iterator[None]:
    """Meanwhile stdout and stderr hold no commands of CI runners but those of `print_command`."""
    before = sys.stdout, sys.stderr
    for stream in before:
        _replace_what_cannot_be_written(stream)
    sys.stdout, sys.stderr = own = [cast("TextIO", CommandlessStream(stream)) for stream in before]
    try:
        yield
    finally:
        for stream in own:
            stream.flush()  # at the interpreter's end it would be too late for a pipe that nobody reads
        sys.stdout, sys.stderr = before


def _replace_what_cannot_be_written(stream: TextIO) -> None:
    """An output that is not UTF-8 shows `?` for the characters that it lacks."""
    if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
        stream.reconfigure(errors="replace")


def print_command(line: str, *, err: bool) -> None:
    """Print a line that a CI runner is meant to read."""
    stream = sys.stderr if err else sys.stdout
    if isinstance(stream, CommandlessStream):
        stream.write_as_it_is(f"{line}\n")
    else:
        click.echo(line, file=stream)


def print_json(value: object) -> None:
    """Print a value for machines."""
    print_json_text(json_without_commands(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=2)) + "\n")


def print_json_text(text: str) -> None:
    """Print JSON, or a piece of it; what the output cannot hold is escaped, so that nothing is lost."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    click.echo(text.encode(encoding, JSON_ESCAPES).decode(encoding), nl=False)


def _json_escape(error: UnicodeError) -> tuple[str, int]:
    """The characters that cannot be encoded, as JSON writes them in ASCII."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end


JSON_ESCAPES = "evaltrack.json"
codecs.register_error(JSON_ESCAPES, _json_escape)
