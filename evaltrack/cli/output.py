"""What a command prints: for people or for machines, and never a command of a CI runner out of foreign text."""

from __future__ import annotations

import codecs
import json
import os
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
from evaltrack.report.escaping import json_without_commands, without_any_commands

if TYPE_CHECKING:
    from rich.console import Console


def wants_json(output: str) -> bool:
    """Whether stdout gets JSON: where that is asked for, and by default where it is a file."""
    return output == "json" or (output == "auto" and is_file(sys.stdout))


def is_file(stream: TextIO) -> bool:
    """Whether a stream writes into a file, and not to a terminal or a pipe."""
    try:
        return stat.S_ISREG(os.fstat(stream.fileno()).st_mode)
    except (OSError, ValueError):  # closed, or none of the system's
        return False


class CommandlessStream:
    """A text stream on which no line is a command of a CI runner, whoever writes it.

    Once it cannot be written any more (`| head`, a full disk, a closed descriptor) the rest goes nowhere. `problem`
    says why, but not for a closed pipe; `is_cut` that a file or terminal was there, and lacks a part.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self.problem = ""
        self.is_cut = False
        self.is_closed = stream is None
        self.result_place = ""
        self.stream = _nowhere() if stream is None else stream

    def write(self, text: str) -> int:
        """Write the text; each call counts as the beginning of a line."""
        self.write_as_it_is(without_any_commands(text))
        return len(text)

    def write_as_it_is(self, text: str) -> None:
        """Write what a CI runner is meant to read."""
        if self.is_closed:
            self.problem = "it is closed"
        with self._written_or_nowhere():
            self.stream.write(text)

    def flush(self) -> None:
        """Pass on what was written."""
        with self._written_or_nowhere():
            self.stream.flush()

    @contextmanager
    def _written_or_nowhere(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._give_up(error)
        except ValueError as error:
            if not self.stream.closed:
                raise
            self._give_up(error)

    def _give_up(self, error: OSError | ValueError) -> None:
        if not isinstance(error, BrokenPipeError):
            self.is_cut = self.is_cut or isinstance(error, OSError)
            self.problem = self.problem or getattr(error, "strerror", None) or str(error)
        try:
            descriptor = self.stream.fileno()
        except (OSError, ValueError):  # closed, or none of the system's
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
    """Meanwhile stdout and stderr hold no commands of CI runners but those of `print_command`."""
    _open_closed_descriptors()
    before = sys.stdout, sys.stderr
    for stream in before:
        _replace_what_cannot_be_written(stream)
    sys.stdout, sys.stderr = own = [cast("TextIO", CommandlessStream(stream)) for stream in before]
    try:
        yield
    finally:
        for stream in own:
            stream.flush()  # at the interpreter's end it would be too late for a closed pipe
        sys.stdout, sys.stderr = before


def _open_closed_descriptors() -> None:
    """Open stdin, stdout and stderr where the caller closed them: the next file to be opened would take their place."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.set_inheritable(os.open(os.devnull, os.O_RDWR), True)  # the lowest number that is free


IN_EXIT_CODE = "the exit code"
"""The place of a result that is nowhere but in the code with which the command ends."""


def result_is_in(place: str) -> None:
    """Say where the result of a command is besides on stdout; a stdout that is closed then decides nothing."""
    if isinstance(sys.stdout, CommandlessStream):
        sys.stdout.result_place = place


def code_after_output(code: int) -> int:
    """The exit code of a command, once what it printed is written; a result that is cut or lost is no success.

    Where stdout cannot be written, stderr says so and where the result is. A full disk is never a success: what was
    printed may be a file that the next step reads. A reader that went away (`| head`) had what it wanted.
    """
    sys.stdout.flush()
    if not isinstance(sys.stdout, CommandlessStream) or not sys.stdout.problem:
        return code
    place = sys.stdout.result_place
    if sys.stdout.is_cut and not code:
        code, place = EXIT_INCONCLUSIVE, "" if place == IN_EXIT_CODE else place
    where = f"the result is in {place}" if place else "what is missing is lost"
    click.echo(f"stdout could not be written: {sys.stdout.problem}; {where}", err=True)
    return code if place or code else EXIT_INCONCLUSIVE


def _replace_what_cannot_be_written(stream: TextIO | None) -> None:
    """An output that is not UTF-8 shows `?` for the characters that it lacks, and signs of ours in ASCII."""
    if isinstance(stream, TextIOWrapper) and stream.errors == "strict":
        stream.reconfigure(errors=TEXT_ESCAPES)


IN_ASCII = {MINUS: "-", "→": "->", "≈": "~", "✕": "x", "✓": "v", "…": "...", "×": "x", "·": "-", "–": "-"}
"""Signs that change what is said where they are missing."""


def _ascii_signs(error: UnicodeError) -> tuple[str, int]:
    """The characters that cannot be encoded, each as its sign in ASCII or as a question mark."""
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
    """Tell on stderr what takes long."""
    click.echo(text, err=True)


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
