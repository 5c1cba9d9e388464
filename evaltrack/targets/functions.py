"""A user's function as a target in this process, with the span of a question around each of its calls."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from evaltrack.records import Question, Response, Target
from evaltrack.records.response import TraceHome, TracePlace
from evaltrack.system.files import content_digest
from evaltrack.targets.call_shape import CallShape, call_shape, is_async
from evaltrack.targets.failures import FailedElsewhereError, InvalidResponseError, note_origin
from evaltrack.targets.mapping import MAX_BYTES
from evaltrack.targets.packages import imported_files, packages_here
from evaltrack.targets.responses import as_response
from evaltrack.targets.threads import aside, in_own_loop, in_thread
from evaltrack.tracking.question_spans import SpanHabit, lead_back, lead_to, question_span, write_spans


def function_target(function: Callable[..., Any], *, own_loop: bool = True) -> Target:
    """A `Target` that calls `function`: a sync one in threads, an async one in an event loop of its own, or in ours.

    Raises:
        UsageError: the function takes other arguments than a question, k and messages.
    """
    return FunctionTarget(function, call_shape(function), in_own_loop if own_loop else _as_it_is)


class FunctionTarget(Target):
    """A function in this process; `run` says in which event loop its coroutines are awaited."""

    _home: TraceHome | None = None
    _led = False

    def __init__(
        self, function: Callable[..., Any], shape: CallShape, run: Callable[[Callable[..., Any]], Callable[..., Any]]
    ) -> None:
        by_position, habit = shape.bound(function), SpanHabit()
        self._module = getattr(function, "__module__", None) or ""
        self._files: dict[str, str] = {}
        self._shape = shape
        self._call = (
            run(_spanned_async(by_position, habit)) if is_async(function) else in_thread(_spanned(by_position, habit))
        )
        self._finish = run(_awaited)

    @property
    def packages(self) -> Mapping[str, str]:
        """Those of this interpreter."""
        return packages_here()

    @property
    def files(self) -> Mapping[str, str]:
        """Those of the project that this process has imported, each as it was when it was first looked for."""
        for name, path in imported_files(self._module).items():
            if name not in self._files and (digest := content_digest(path)):
                self._files[name] = digest
        return self._files

    @property
    def takes_history(self) -> bool:
        """Whether the function takes the turns before a question."""
        return self._shape.takes_history

    def trace_into(self, home: TraceHome) -> None:
        """Have the function's own traces belong to a run."""
        self._led = lead_to(home) or self._led
        self._home = home

    async def __call__(self, question: Question, k: int, /) -> Response:
        """What the function returns.

        Raises:
            InvalidResponseError: it is no response.
        """
        arguments = self._shape.arguments(question, k)
        returned, trace = await self._call(self._home, question, *arguments)
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
            lead_back()
            self._led = False


Spanned = tuple[Any, TracePlace | None]
"""What a function returned, and the trace that it made meanwhile."""


def _spanned(function: Callable[..., Any], habit: SpanHabit) -> Callable[..., Spanned]:
    def call(home: TraceHome | None, question: Question, *arguments: object) -> Spanned:
        with _span(home, question, habit) as trace:
            return function(*arguments), trace

    return call


def _spanned_async(function: Callable[..., Any], habit: SpanHabit) -> Callable[..., Awaitable[Spanned]]:
    async def call(home: TraceHome | None, question: Question, *arguments: object) -> Spanned:
        with _span(home, question, habit) as trace:
            return await function(*arguments), trace

    return call


@contextmanager
def _span(home: TraceHome | None, question: Question, habit: SpanHabit) -> Iterator[TracePlace | None]:
    trace = None
    try:
        with question_span(home, question, habit) as span:
            trace = span.place
            yield trace
    except Exception as error:
        note_origin(error, trace)
        raise


def _as_it_is(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


async def _awaited(returned: Awaitable[Any]) -> Any:
    return await returned


def small_enough(response: Response) -> Response:
    """Rows wait for each other in memory, a thousand at a time: what is longer than a server may send is refused."""
    texts = [response.answer, *(text for each in response.sources or () for text in (each.text, each.title, each.url))]
    length = sum(len(text) for text in texts if text)
    if length > MAX_BYTES:
        raise InvalidResponseError(f"is {length:,} characters long; return at most {MAX_BYTES:,}")
    return response
