"""The run loop: ask the target every question, score what comes back, yield a row.

It knows neither files nor MLflow. A failure stays in its row; only a fault of evaltrack itself, of the golden set or a
Ctrl-C ends the loop early, and then no task is left behind.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable

from evaltrack.records import Failure, FailureKind, Question, Response, Row, Target
from evaltrack.scores import measure
from evaltrack.targets.responses import InvalidResponseError

CONCURRENCY = 16
TIMEOUT = 60.0
STOP_SECONDS = 5.0
"""How long the questions in flight may take to stop."""

MESSAGE_LIMIT = 2000
"""Characters kept of a failure's message."""


async def evaluate(
    questions: Iterable[Question],
    target: Target,
    *,
    k: int = 5,
    concurrency: int = CONCURRENCY,
    timeout: float = TIMEOUT,
) -> AsyncGenerator[Row]:
    """Yield one row for each question, in the order in which they finish.

    At most `concurrency` questions are in flight; each has `timeout` seconds. Memory does not grow with the questions.
    Closing the generator stops what is in flight.

    Raises:
        ValueError: `concurrency` is below 1.
    """
    if concurrency < 1:
        raise ValueError(f"concurrency is {concurrency}; at least 1 question must be in flight")
    stopping = False
    numbered = iter(enumerate(questions))
    finished: asyncio.Queue[Row | None] = asyncio.Queue(maxsize=4 * concurrency)

    async def work() -> None:
        for position, question in numbered:
            if stopping:
                return
            await finished.put(await _row(position, question, target, k, timeout))

    async def work_off() -> None:
        await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
        await finished.put(None)

    workers = [asyncio.create_task(work()) for _ in range(concurrency)]
    whole = asyncio.create_task(work_off())
    try:
        while (row := await finished.get()) is not None:
            yield row
        for worker in workers:
            if worker.done():
                worker.result()  # raises what ended it: the golden set changed, or a fault of our own
    finally:
        stopping = True
        await _cancel({whole, *workers})


async def _cancel(tasks: set[asyncio.Task[None]]) -> None:
    """Cancel until all have ended: a target may swallow a cancellation, and one that hangs for ever is left behind."""
    deadline = time.monotonic() + STOP_SECONDS
    while tasks and time.monotonic() < deadline:
        for task in tasks:
            task.cancel()
        _, tasks = await asyncio.wait(tasks, timeout=0.1)


async def _row(position: int, question: Question, target: Target, k: int, timeout: float) -> Row:
    started_at, start = time.time(), time.perf_counter()
    outcome = await _ask(question, target, k, timeout)
    seconds = time.perf_counter() - start
    if isinstance(outcome, Failure):
        return Row(position=position, question=question, failure=outcome, started_at=started_at, seconds=seconds)
    measured = measure(question, outcome, k)
    return Row(
        position=position,
        question=question,
        response=outcome,
        scores=measured.scores,
        unmeasured=measured.unmeasured,
        duplicates=measured.duplicates,
        passed=measured.passed,
        started_at=started_at,
        seconds=seconds,
    )


async def _ask(question: Question, target: Target, k: int, timeout: float) -> Response | Failure:
    outcome: Response | BaseException
    try:
        async with asyncio.timeout(timeout) as deadline:
            outcome = await target(question, k)
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise  # we are being stopped; otherwise it is the target's own
        outcome = error
    if deadline.expired():  # also where the target swallowed it: late is late
        return failure("target_timeout", f"no response within {timeout:g} s")
    if isinstance(outcome, InvalidResponseError):
        return failure("target_invalid", f"what the target returned {outcome}")
    if isinstance(outcome, BaseException):
        return failure("target_error", f"{type(outcome).__name__}: {_message(outcome)}")
    return outcome


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "(its message cannot be read)"


def failure(kind: FailureKind, message: str) -> Failure:
    """A failure whose message can be stored anywhere: bounded, and valid Unicode."""
    text = message.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")
    return Failure(kind=kind, message=text if len(text) <= MESSAGE_LIMIT else text[: MESSAGE_LIMIT - 1] + "…")
