"""Functions of a user from async code, in daemon threads of their own."""

from __future__ import annotations

import asyncio
import queue
import threading
import weakref
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


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
            if not _answer(loop, future, function, arguments):
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


async def aside(function: Callable[..., T], *arguments: Any) -> T:
    """The result of one call in a daemon thread, which ends with it: a call that hangs does not delay the exit."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    work = [loop, future, function, arguments]
    threading.Thread(target=_answer, args=work, daemon=True, name="evaltrack-aside").start()
    return await future


def in_own_loop(function: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Any]:
    """Run a coroutine function in an event loop of its own.

    What it does to its loop, or to the tasks in it, is nothing to ours: it may cancel them all, stop the loop, hold it
    up or swallow its own cancellation.
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
    """An event loop that runs in a daemon thread until its owner is gone."""
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


def _answer(
    loop: asyncio.AbstractEventLoop,
    future: asyncio.Future[Any],
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> bool:
    """Make a call in this thread, and give its end to the loop; False where that was closed meanwhile."""
    try:
        outcome, failure = function(*arguments), None
    except BaseException as error:
        outcome, failure = None, error
    try:
        loop.call_soon_threadsafe(_settle, future, outcome, failure)
    except RuntimeError:
        return False
    return True


def _settle(future: asyncio.Future[Any], outcome: Any, failure: BaseException | None) -> None:
    if future.done():  # cancelled by its deadline
        return
    if failure is None:
        future.set_result(outcome)
    elif isinstance(failure, Exception) and not isinstance(failure, StopIteration):
        future.set_exception(failure)
    else:  # a future refuses StopIteration, and SystemExit must not end the run
        future.set_exception(RuntimeError(f"{type(failure).__name__}: {failure}"))
