"""Runs a program for each question, as the target `command:PROGRAM ARGUMENT …`, and reads its JSON response.

The line is split into arguments as by a POSIX shell (on Windows a backslash is no quote), once and before any question
is known; there is no shell, so pipes, variables and wildcards have no effect. Then ``{question}``, ``{k}`` and ``{id}``
are replaced inside the arguments: any question remains one argument, or a part of one. ``{messages}`` is the
conversation as a JSON list, the turns before the question and the question as the user's last message; ``{history}`` is
the same without the question. A program with neither is given only the question. Write a brace as ``{{`` or ``}}``. A
question that starts with ``-`` is passed unchanged, and most programs read it as an option: write
``--question={question}`` or put ``--`` before it.

The program inherits working directory and environment; its input is empty. The settings in
`evaltrack.targets.responses` map the fields of the response. It runs in a separate process group, which is killed when
the deadline passes, when it writes too much, and when it ended and left other processes behind.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from subprocess import DEVNULL, Popen, TimeoutExpired
from tempfile import TemporaryFile
from typing import IO

from evaltrack.errors import Guide, UsageError
from evaltrack.privacy.addresses import shown_text
from evaltrack.records import Question, Response, Target
from evaltrack.system.files import content_digest
from evaltrack.system.processes import kill_group, own_group, split_command
from evaltrack.targets import TargetSettings, checked_settings
from evaltrack.targets.failures import ending
from evaltrack.targets.responses import EXCERPT_BYTES, MAPPED, MAX_BYTES, ResponseReader, excerpt, take_mapping

CONVERSATION = ("messages", "history")
PLACEHOLDERS = ("question", "k", "id", *CONVERSATION)
_KNOWN = ", ".join(f"{{{name}}}" for name in PLACEHOLDERS)
_BRACES = re.compile(r"\{\{|\}\}|\{[^{}]*\}|[{}]")

STDERR_SHOWN = 500

LOOK_SECONDS = 0.005

END_SECONDS = 3.0
"""Seconds in which a killed program must end."""


class CommandTargetError(RuntimeError):
    """The program cannot be started, failed, or wrote too much."""


def open_command(place: str, settings: dict[str, str]) -> CommandTarget:
    """Return a target that runs the command line `place`. Settings: those of `evaltrack.targets.responses`.

    Raises:
        UsageError: the line cannot be split, the program is missing, or a placeholder or a setting is unknown.
    """
    reader = take_mapping("command", settings)
    checked_settings("command", TargetSettings, settings, MAPPED)
    try:
        arguments = split_command(place)
    except ValueError as error:
        raise UsageError(f"command target `{shown_text(place)}`: {error}; quote as in a shell") from None
    if not arguments:
        raise UsageError("command target: names no program; write command:PROGRAM {question}")
    names = {name for argument in arguments for name in _placeholders(argument)}
    if names.isdisjoint({"question", "messages", "id"}):
        raise UsageError(
            f"command target `{shown_text(place)}`: holds no {{question}}, so that every question would be the same",
            guide=Guide.PROGRAM,
        )
    if shutil.which(arguments[0]) is None:
        why = f"there is no program `{arguments[0]}`; install it, or name it with its path"
        raise UsageError(f"command target: {why}", guide=Guide.PROGRAM)
    return CommandTarget(arguments, reader)


def _placeholders(argument: str) -> set[str]:
    """Return the placeholders in an argument.

    Raises:
        UsageError: a placeholder is unknown, or there is a single brace.
    """
    tokens = {token for token in _BRACES.findall(argument) if token not in {"{{", "}}"}}
    for token in tokens:
        if token[1:-1] not in PLACEHOLDERS:
            raise UsageError(f"command target: unknown placeholder `{token}`; known: {_KNOWN}; a brace is {{{{ or }}}}")
    return {token[1:-1] for token in tokens}


def fill(argument: str, values: Mapping[str, str]) -> str:
    """Replace the placeholders in one argument; placeholders inside the values are not replaced."""
    return _BRACES.sub(lambda match: values.get(match[0][1:-1], match[0][0]), argument)


class CommandTarget(Target):
    """Runs a program for each question."""

    takes_history: bool = False

    def __init__(self, arguments: list[str], reader: ResponseReader | None = None) -> None:
        self._arguments = arguments
        self.takes_history = any(not _placeholders(each).isdisjoint(CONVERSATION) for each in arguments)
        self._reader = reader or ResponseReader()

    @property
    def files(self) -> Mapping[str, str]:
        """The files that the command line names."""
        digests = {argument: content_digest(Path(argument)) for argument in self._arguments}
        return {name: digest for name, digest in digests.items() if digest}

    async def __call__(self, question: Question, k: int, /) -> Response:
        """Run the program and read its output.

        Raises:
            CommandTargetError: it cannot be started, ended with a code other than 0, or wrote too much.
            InvalidResponseError: its output is not JSON, or not in the expected form.
        """
        *history, _ = messages = question.messages
        values = {"question": question.question, "k": str(k), "id": question.id}
        values |= {"messages": json.dumps(messages, ensure_ascii=False)}
        values |= {"history": json.dumps(history, ensure_ascii=False)}
        with TemporaryFile() as output, TemporaryFile() as errors:
            code = await _run([fill(argument, values) for argument in self._arguments], output, errors)
            if code:
                errors.seek(max(0, _size(errors) - EXCERPT_BYTES))
                words = excerpt(errors.read(), limit=STDERR_SHOWN, end=True)
                said = f"its standard error ends with `{words}`" if words else "it wrote nothing to its standard error"
                raise CommandTargetError(f"{ending(code)}; {said}")
            output.seek(0)
            return self._reader.from_json(output.read())


async def _run(arguments: list[str], output: IO[bytes], errors: IO[bytes]) -> int:
    """Run a program to its end, and return its exit code. In every case its process group is ended too.

    It writes to files: a pipe would be open as long as any process that the program left behind.
    """
    try:
        process = Popen(arguments, stdin=DEVNULL, stdout=output, stderr=errors, **own_group())  # noqa: ASYNC220, S603
    except OSError as error:
        raise CommandTargetError(f"cannot be started: {error.strerror}") from None
    try:
        while process.poll() is None and max(_size(output), _size(errors)) <= MAX_BYTES:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_SECONDS)
    finally:
        kill_group(process.pid)
        with suppress(TimeoutExpired):
            process.wait(END_SECONDS)
    if max(_size(output), _size(errors)) > MAX_BYTES:
        raise CommandTargetError(f"wrote more than {MAX_BYTES:,} bytes and was killed")
    return process.returncode


def _size(file: IO[bytes]) -> int:
    return os.fstat(file.fileno()).st_size
