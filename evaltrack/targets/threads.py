"""Runs a user's sync functions in daemon threads, and async ones in this or a separate event loop."""

from __future__ import annotations

import asyncio
import inspect
import threading
import weakref
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar

T = TypeVar("T")


async def aside(function: Callable[..., T], *arguments: Any) -> T:
    """Return the result of one call in a new daemon thread.

    The pools of the standard library wait at exit for hanging calls; daemon threads do not.
    """
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

    The function may cancel all tasks of its loop, block the loop, or ignore cancellation, without any effect on the
    loop of evaltrack.
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


def user_call(function: Callable[..., Any], *, own_loop: bool) -> Callable[..., Any]:
    """Return an async function that calls a user's function: a sync one in threads, an async one in a loop.

    The loop is a separate one with `own_loop`, else the running one. A coroutine that a sync function returns is
    awaited in the same loop.
    """
    run: Callable[[Callable[..., Any]], Callable[..., Any]] = in_own_loop if own_loop else lambda same: same
    begin, finish = run(function) if is_async(function) else partial(aside, function), run(awaited)

    async def call(*arguments: Any) -> Any:
        returned = await begin(*arguments)
        return await finish(returned) if inspect.isawaitable(returned) else returned

    return call


async def awaited(returned: Awaitable[Any]) -> Any:
    """Return the result of an awaitable."""
    return await returned


def is_async(function: Callable[..., Any]) -> bool:
    """Return True for a coroutine function, or an object whose `__call__` is one."""
    return any(map(inspect.iscoroutinefunction, (function, type(function).__call__)))


def loop_in_thread(owner: object) -> asyncio.AbstractEventLoop:
    """Return an event loop that runs in a daemon thread until its owner is deleted."""
    loop = asyncio.new_event_loop()

    def run() -> None:
        asyncio.set_event_loop(loop)
        loop.run_forever()
        loop.close()

    weakref.finalize(owner, loop.call_soon_threadsafe, loop.stop).atexit = False
    threading.Thread(target=run, daemon=True, name="evaltrack-target-loop").start()
    return loop
