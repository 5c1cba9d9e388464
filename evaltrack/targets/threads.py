"""Sync functions from async code, in daemon threads."""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from typing import Any


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
