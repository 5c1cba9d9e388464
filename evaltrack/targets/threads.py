"""Runs functions of a user from async code in daemon threads."""

from __future__ import annotations

import asyncio
import threading
import weakref
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


def in_thread(function: Callable[..., Any]) -> Callable[..., Any]:
    """Run a sync function in daemon threads, one per call.

    The pools of the standard library wait at exit for hanging calls; daemon threads do not.
    """

    async def call(*arguments: Any) -> Any:
        return await aside(function, *arguments)

    return call


async def aside(function: Callable[..., T], *arguments: Any) -> T:
    """Return the result of one call in a new daemon thread; a hanging call does not delay the exit."""
    future = Future[T]()
    threading.Thread(target=_make, args=(future, function, arguments), daemon=True, name="evaltrack-target").start()
    return await asyncio.wrap_future(future)


def _make(future: Future[Any], function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    """Make a call in this thread and set the future's result; a cancelled call is not made."""
    if not future.set_running_or_notify_cancel():
        return
    try:
        future.set_result(function(*arguments))
    except BaseException as error:
        # A future of asyncio refuses StopIteration, and SystemExit must not end the run.
        is_plain = isinstance(error, Exception) and not isinstance(error, StopIteration)
        future.set_exception(error if is_plain else RuntimeError(f"{type(error).__name__}: {error}"))


def in_own_loop(function: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Any]:
    """Run a coroutine function in a separate event loop.

    The function may cancel all tasks of its loop, stop or block the loop, or ignore cancellation, without any effect on
    the loop of evaltrack.
    """
    own: list[asyncio.AbstractEventLoop] = []

    async def guarded(*arguments: Any) -> Any:
        try:
            return await function(*arguments)
        except (SystemExit, KeyboardInterrupt) as error:  # they would end the loop
            raise RuntimeError(f"{type(error).__name__}: {error}") from error

    async def call(*arguments: Any) -> Any:
        if not own:
            own.append(loop_in_thread(call))
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(guarded(*arguments), own[0]))

    return call


def loop_in_thread(owner: object) -> asyncio.AbstractEventLoop:
    """Return an event loop that runs in a daemon thread until its owner is deleted."""
    loop = asyncio.new_event_loop()
    ended_event = threading.Event()

    def run() -> None:
        asyncio.set_event_loop(loop)
        while not ended_event.is_set() and not loop.is_closed():  # the function may stop it
            loop.run_forever()
        if not loop.is_closed():
            loop.close()

    def end() -> None:
        ended_event.set()
        if not loop.is_closed():
            loop.call_soon_threadsafe(loop.stop)

    weakref.finalize(owner, end).atexit = False
    threading.Thread(target=run, daemon=True, name="evaltrack-target-loop").start()
    return loop
