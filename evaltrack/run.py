"""The run loop: ask the target every question, score what comes back, yield a row.

It knows neither files nor MLflow. A failure stays in its row; only a fault of evaltrack itself, of the golden set or a
Ctrl-C ends the loop early, and then no task is left behind.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from evaltrack.errors import EvaltrackError
from evaltrack.records import Failure, FailureKind, Judge, Question, Response, Row, Target, Tokens, Verdict
from evaltrack.scores import Rules, measure
from evaltrack.targets.responses import InvalidResponseError

CONCURRENCY = 16
TIMEOUT = 60.0
JUDGE_TIMEOUT = 600.0
"""Seconds for all judges' calls of one question: a server that says when to come again is waited for."""

Outcome = TypeVar("Outcome", Response, Verdict)
Counter = Callable[[Sequence[str]], Tokens]
STOP_SECONDS = 5.0
"""How long the questions in flight may take to stop."""

MESSAGE_LIMIT = 2000
"""Characters kept of a failure's message."""


async def evaluate(
    questions: Iterable[Question],
    target: Target,
    *,
    rules: Rules = Rules(),  # noqa: B008 - frozen
    judges: Sequence[Judge] = (),
    count: Counter | None = None,
    concurrency: int = CONCURRENCY,
    timeout: float = TIMEOUT,
    judge_timeout: float = JUDGE_TIMEOUT,
) -> AsyncGenerator[Row]:
    """Yield one row for each question, in the order in which they finish.

    At most `concurrency` questions are in flight; the target has `timeout` seconds for each, the judges
    `judge_timeout`. `count` counts the tokens of a response whose target reports none. Memory does not grow with the
    questions. Closing the generator stops what is in flight.

    Raises:
        ValueError: `concurrency` is below 1.
    """
    if concurrency < 1:
        raise ValueError(f"concurrency is {concurrency}; at least 1 question must be in flight")
    stopping = False
    row_of = _Asking(target, rules, judges, count, timeout, judge_timeout).row
    numbered = iter(enumerate(questions))
    finished: asyncio.Queue[Row | None] = asyncio.Queue(maxsize=4 * concurrency)

    async def work() -> None:
        for position, question in numbered:
            if stopping:
                return
            await finished.put(await row_of(position, question))

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


@dataclass(frozen=True)
class _Asking:
    """One question from asking to its row."""

    target: Target
    rules: Rules
    judges: Sequence[Judge]
    count: Counter | None
    timeout: float
    judge_timeout: float

    async def row(self, position: int, question: Question) -> Row:
        started_at, start = time.time(), time.perf_counter()
        outcome = await _within(self.timeout, lambda: self.target(question, self.rules.k), "target")
        timing = {"started_at": started_at, "seconds": time.perf_counter() - start}
        if isinstance(outcome, Failure):
            return Row(position=position, question=question, failure=outcome, **timing)
        judges = self.judges if outcome.answer is not None else ()  # what only retrieves has nothing to be judged
        judged = await _together([self._judge(judge, question, outcome) for judge in judges])
        verdicts = tuple(verdict for verdict in judged if isinstance(verdict, Verdict))
        failure = next((verdict for verdict in judged if isinstance(verdict, Failure)), None)
        tokens = _tokens(question, outcome, self.rules.k, self.count)
        counted = () if failure else verdicts
        measured = measure(question, outcome, self.rules, counted, tokens, judge_failed=failure is not None)
        return Row(
            position=position,
            question=question,
            response=outcome,
            verdicts=verdicts,
            failure=failure,
            scores=measured.scores,
            unmeasured=measured.unmeasured,
            duplicates=measured.duplicates,
            passed=measured.passed,
            tokens=tokens,
            **timing,
        )

    async def _judge(self, judge: Judge, question: Question, response: Response) -> Verdict | Failure:
        outcome = await _within(self.judge_timeout, lambda: judge(question, response), "judge")
        if not isinstance(outcome, Verdict | Failure):
            outcome = failure("judge_error", f"the judge returned {type(outcome).__name__}, which is no Verdict")
        if isinstance(outcome, Failure) and len(self.judges) > 1:
            return failure(outcome.kind, f"{judge.name}: {outcome.message}")
        return outcome


async def _together(asking: Sequence[Coroutine[Any, Any, Verdict | Failure]]) -> list[Verdict | Failure]:
    """What all of them give; where one raises, none is left behind."""
    tasks = [asyncio.ensure_future(each) for each in asking]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


def _tokens(question: Question, response: Response, k: int, count: Counter | None) -> Tokens | None:
    """What the target reports; else the count of question, the first k sources' text and answer (SPEC section 5)."""
    if response.usage is not None:
        return Tokens(count=response.usage.total_tokens, known="reported")
    if count is None:
        return None
    texts = [question.question, *(source.text or "" for source in (response.sources or ())[:k]), response.answer or ""]
    return count(texts)


async def _within(
    seconds: float, ask: Callable[[], Awaitable[Outcome]], who: Literal["target", "judge"]
) -> Outcome | Failure:
    """What was asked for, or why it did not come. Only an error of evaltrack itself, or being stopped, goes further."""
    outcome: Outcome | BaseException
    try:
        async with asyncio.timeout(seconds) as deadline:
            outcome = await ask()
    except EvaltrackError:
        raise  # e.g. a key that the server refuses: no question could be answered
    except (Exception, SystemExit, asyncio.CancelledError) as error:
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise  # we are being stopped; otherwise it is the target's own
        outcome = error
    if deadline.expired():  # also where it was swallowed: late is late
        return failure("judge_error" if who == "judge" else "target_timeout", f"no response within {seconds:g} s")
    if not isinstance(outcome, BaseException):
        return outcome
    if isinstance(outcome, InvalidResponseError) and who == "target":
        return failure("target_invalid", f"what the target returned {outcome}")
    return failure(
        "judge_error" if who == "judge" else "target_error", f"{type(outcome).__name__}: {_message(outcome)}"
    )


def _message(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:
        return "(its message cannot be read)"


def failure(kind: FailureKind, message: str) -> Failure:
    """A failure whose message can be stored anywhere: bounded, and valid Unicode."""
    text = message.encode("utf-8", "replace").decode().replace("\0", "\N{REPLACEMENT CHARACTER}")
    return Failure(kind=kind, message=text if len(text) <= MESSAGE_LIMIT else text[: MESSAGE_LIMIT - 1] + "…")


def run_to_end(work: Callable[[], Any]) -> None:
    """`asyncio.run`, also where a loop is already running (a notebook): then in a thread of its own."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        asyncio.run(work())
        return
    raised: list[BaseException] = []

    def run() -> None:
        try:
            asyncio.run(work())
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, name="evaltrack-run")
    thread.start()
    thread.join()
    if raised:
        raise raised[0]
