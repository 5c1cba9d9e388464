"""`python:package.module:function`: your own function as the target, sync or async.

The function is called with the question's text and k: ``def ask(question: str, k: int)``. One that takes a single
argument is called without k; one whose first parameter is annotated `Question` gets the whole record. It may return a
`Response`, a mapping of its fields, a list of sources (or of chunk ids), or a plain answer; as from any other target,
of at most `MAX_ITEMS` sources and `MAX_BYTES` characters.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import os
import queue
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evaltrack.errors import UsageError
from evaltrack.records import Question, Response, Target
from evaltrack.targets import no_more_settings
from evaltrack.targets.mapping import MAX_BYTES, bounded
from evaltrack.targets.responses import InvalidResponseError, as_response


def open_python(place: str, settings: dict[str, str]) -> Target:
    """Import the function named `package.module:function`; the working directory is searched first.

    Raises:
        UsageError: it cannot be imported, or is no function of one or two arguments.
    """
    no_more_settings("python", settings)
    return function_target(import_function(place))


def import_function(place: str, what: str = "python target") -> Callable[..., Any]:
    """The object called `package.module:name`, which must be callable.

    Raises:
        UsageError: it cannot be imported or called.
    """
    module_name, colon, name = place.partition(":")
    if not colon or not module_name or not name:
        raise UsageError(f"{what} `{place}`: write package.module:function")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    caller = os.environ.get("EVALTRACK_CALLER_FOLDER")  # where `mlflow run` was called
    if caller and caller not in sys.path:
        sys.path.append(caller)
    try:
        found: Any = importlib.import_module(module_name)
        for part in name.split("."):
            found = getattr(found, part)
    except (Exception, SystemExit) as error:
        raise UsageError(f"{what} `{place}`: cannot be imported: {type(error).__name__}: {error}") from error
    if not callable(found):
        raise UsageError(f"{what} `{place}`: is not a function but {type(found).__name__}")
    function: Callable[..., Any] = found
    return function


def function_target(function: Callable[..., Any]) -> Target:
    """A `Target` that calls `function`; a sync one runs in threads, so that a slow call stops nobody else.

    Raises:
        UsageError: the function does not take one or two arguments.
    """
    whole_record, takes_k = _shape(function)
    call = function if is_async(function) else in_thread(function)

    async def ask(question: Question, k: int, /) -> Response:
        first = question if whole_record else question.question
        returned = await (call(first, k) if takes_k else call(first))
        return _small_enough(as_response(bounded(await returned if inspect.isawaitable(returned) else returned)))

    return ask


def _small_enough(response: Response) -> Response:
    """Rows wait for each other in memory, a thousand at a time: what is longer than a server may send is refused."""
    texts = [response.answer, *(text for each in response.sources or () for text in (each.text, each.title, each.url))]
    length = sum(len(text) for text in texts if text)
    if length > MAX_BYTES:
        raise InvalidResponseError(f"is {length:,} characters long; return at most {MAX_BYTES:,}")
    return response


def _shape(function: Callable[..., Any]) -> tuple[bool, bool]:
    """Whether the function wants the whole `Question`, and whether it takes k."""
    try:
        signature = inspect.signature(function)
        signature.bind("question", 5)
        takes_k = True
    except ValueError:  # some builtins tell nothing of their arguments
        return False, True
    except TypeError:
        takes_k = False
        try:
            signature.bind("question")
        except TypeError:
            raise UsageError(f"python target: {function} must take (question, k) or (question)") from None
    first = next(iter(signature.parameters.values()), None)
    return first is not None and _is_question(first.annotation), takes_k


def _is_question(annotation: object) -> bool:
    """Whether an annotation is `Question`, also as a string with or without its module."""
    return annotation is Question or (isinstance(annotation, str) and annotation.rpartition(".")[2] == "Question")


def is_async(function: Callable[..., Any]) -> bool:
    """Whether it is a coroutine function, or an object whose call is one."""
    return any(map(inspect.iscoroutinefunction, (function, type(function).__call__)))


def in_thread(function: Callable[..., Any]) -> Callable[..., Any]:
    """Run a sync function in daemon threads, as many as are asked at once.

    Daemons, because the pools of the standard library wait at exit for a call that hangs for ever.
    """
    jobs: queue.SimpleQueue[tuple[asyncio.AbstractEventLoop, asyncio.Future[Any], tuple[Any, ...]]] = (
        queue.SimpleQueue()
    )
    idle = threading.Semaphore(0)

    def work() -> None:
        while True:
            loop, future, arguments = jobs.get()
            try:
                outcome, failure = function(*arguments), None
            except BaseException as error:
                outcome, failure = None, error
            try:
                loop.call_soon_threadsafe(_settle, future, outcome, failure)
            except RuntimeError:  # the loop was closed while a call past its deadline went on
                return
            idle.release()

    async def call(*arguments: Any) -> Any:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        if not idle.acquire(blocking=False):
            threading.Thread(target=work, daemon=True, name="evaltrack-target").start()
        jobs.put((loop, future, arguments))
        return await future

    return call


def _settle(future: asyncio.Future[Any], outcome: Any, failure: BaseException | None) -> None:
    if future.done():  # cancelled by its deadline
        return
    if failure is None:
        future.set_result(outcome)
    elif isinstance(failure, Exception) and not isinstance(failure, StopIteration):
        future.set_exception(failure)
    else:  # a future refuses StopIteration, and SystemExit must not end the run
        future.set_exception(RuntimeError(f"{type(failure).__name__}: {failure}"))
