"""Calls a user's function as a target in this process, inside a trace span, with the arguments that it takes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from evaltrack.errors import Guide, UsageError
from evaltrack.records import Question, Response, Target
from evaltrack.records.response import TraceHome, TracePlace
from evaltrack.system.files import content_digest
from evaltrack.targets.failures import FailedElsewhereError, InvalidResponseError, note_origin
from evaltrack.targets.packages import imported_files, packages_here
from evaltrack.targets.responses import MAX_BYTES, as_response
from evaltrack.targets.threads import aside, awaited, is_async, user_call
from evaltrack.tracking.question_spans import (
    SpanHabit,
    question_span,
    write_spans,
    write_to_own_store,
    write_to_store_of,
)


class FunctionTarget(Target):
    """A function in this process: a sync one is called in threads, an async one in a separate event loop or in ours.

    Raises:
        UsageError: the function takes other arguments than a question, k and messages.
    """

    _home: TraceHome | None = None
    _led = False

    def __init__(self, function: Callable[..., Any], *, own_loop: bool = True) -> None:
        self._module = getattr(function, "__module__", None) or ""
        self._files: dict[str, str] = {}
        self._shape = call_shape(function)
        self._call = user_call(_spanned(function, SpanHabit()), own_loop=own_loop)
        self._finish = user_call(awaited, own_loop=own_loop)

    @property
    def packages(self) -> Mapping[str, str]:
        """The packages of this interpreter."""
        return packages_here()

    @property
    def files(self) -> Mapping[str, str]:
        """The project's files that this process has imported, with the digest from when each was first seen."""
        for name, path in imported_files(self._module).items():
            if name not in self._files and (digest := content_digest(path)):
                self._files[name] = digest
        return self._files

    @property
    def takes_history(self) -> bool:
        """True if the function takes the turns before a question."""
        return self._shape.takes_history

    def trace_into(self, home: TraceHome) -> None:
        """Write the function's own traces to a run."""
        self._led = write_to_store_of(home) or self._led
        self._home = home

    async def __call__(self, question: Question, k: int, /) -> Response:
        """Return the function's response.

        Raises:
            InvalidResponseError: it returned no response.
        """
        returned, trace = await self._call(self._home, question, *self._shape.arguments(question, k))
        if inspect.isawaitable(returned):
            returned = await self._finish(returned)
        try:
            response = small_enough(as_response(returned))
        except (FailedElsewhereError, InvalidResponseError) as error:
            note_origin(error, trace)
            raise
        return response.model_copy(update={"trace": trace}) if trace or response.trace else response

    async def aclose(self) -> None:
        """Wait until the function's own traces are written."""
        if self._home:
            await aside(write_spans)
        if self._led:
            write_to_own_store()
            self._led = False


Spanned = tuple[Any, TracePlace | None]
"""The value that a function returned, and the trace of its call."""


def _spanned(function: Callable[..., Any], habit: SpanHabit) -> Callable[..., Any]:
    """Return the function with a span around each call; async if it is. Its results are `Spanned`."""

    def call(home: TraceHome | None, question: Question, values: list[Any], named: dict[str, Any]) -> Spanned:
        with _span(home, question, habit) as trace:
            return function(*values, **named), trace

    async def call_async(*arguments: Any) -> Spanned:
        home, question, values, named = arguments
        with _span(home, question, habit) as trace:
            return await function(*values, **named), trace

    return call_async if is_async(function) else call


@contextmanager
def _span(home: TraceHome | None, question: Question, habit: SpanHabit) -> Iterator[TracePlace | None]:
    trace = None
    try:
        with question_span(home, question, habit) as trace:
            yield trace
    except Exception as error:
        note_origin(error, trace)
        raise


def small_enough(response: Response) -> Response:
    """Refuse a response that is longer than a server may send: a thousand rows may wait in memory."""
    texts = [response.answer, *(text for each in response.sources or () for text in (each.text, each.title, each.url))]
    length = sum(len(text) for text in texts if text)
    if length > MAX_BYTES:
        raise InvalidResponseError(f"is {length:,} characters long; return at most {MAX_BYTES:,}")
    return response


MESSAGES = "messages"
ARGUMENTS = ("question", "k", MESSAGES)
"""Arguments that a function may take."""


@dataclass(frozen=True)
class CallShape:
    """The arguments of a function: names from `ARGUMENTS`, the question first if it is passed by position."""

    names: tuple[str, ...]
    whole_record: bool = False

    @property
    def takes_history(self) -> bool:
        """True if it gets the turns before the question; the whole record holds them."""
        return self.whole_record or MESSAGES in self.names

    def arguments(self, question: Question, k: int) -> tuple[list[Any], dict[str, Any]]:
        """Return copies of a call's values, by position or, with `messages`, by name; a function may change them."""
        first = question.model_copy(deep=True) if self.whole_record else question.question
        values = {"question": first, "k": k, MESSAGES: question.messages}
        if MESSAGES in self.names:
            return [], {name: values[name] for name in self.names}
        return [values[name] for name in self.names], {}


def call_shape(function: Callable[..., Any]) -> CallShape:
    """Return the arguments that a function takes.

    Raises:
        UsageError: it takes other arguments.
    """
    try:
        signature = inspect.signature(function)
    except ValueError:  # some builtins have no signature
        return CallShape(("question", "k"))
    parameters = signature.parameters
    if MESSAGES in parameters:
        names = tuple(each for each in parameters if each in ARGUMENTS)
        names = names if binds(signature, **dict.fromkeys(names)) else ()
        question = parameters.get("question")
    else:
        names = next((each for each in (("question", "k"), ("question",)) if binds(signature, *each)), ())
        question = next(iter(parameters.values()), None)
    if not names:
        short = getattr(function, "__name__", "ask")
        cure = f"write def {short if short.isidentifier() else 'ask'}(question, k)"
        takes = "must take (question, k), (question) or (messages), and other parameters need a default"
        raise UsageError(f"python target `{_name(function)}`: {takes}; {cure}", guide=Guide.FUNCTION)
    return CallShape(names, question is not None and _is_question(question.annotation))


def _name(function: Callable[..., Any]) -> str:
    return f"{function.__module__}:{getattr(function, '__qualname__', type(function).__name__)}"


def binds(signature: inspect.Signature, *values: object, **named: object) -> bool:
    """Return True if a function with this signature can be called so."""
    try:
        signature.bind(*values, **named)
    except TypeError:
        return False
    return True


def _is_question(annotation: object) -> bool:
    """Return True if an annotation is `Question`, also as a string with or without its module."""
    return annotation is Question or (isinstance(annotation, str) and annotation.rpartition(".")[2] == "Question")
