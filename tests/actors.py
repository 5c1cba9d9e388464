"""Targets and judges for the tests of asking and running: some answer, some fail, some never come back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import Any

from evaltrack.evaluation.ask import Evaluator
from evaltrack.evaluation.loop import evaluate
from evaltrack.records import Judge, PlainTarget, Question, Response, Row, Source, Target, Verdict

FOUND = Response(answer="Paris.", sources=(Source(chunk_id="x"), Source(chunk_id="x"), Source(chunk_id="a")))


def questions(number: int) -> list[Question]:
    """Questions with the ids `0`, `1`, ..., each of which expects the chunk `a`."""
    return [Question(id=str(place), question="What?", expected_chunks=("a",), domain="d") for place in range(number)]


def evaluator(target: Target | Callable[[Question, int], Awaitable[Response]], **settings: Any) -> Evaluator:
    return Evaluator(target if hasattr(target, "ready") else PlainTarget(target), **settings)


def evaluated(asked: Iterable[Question], target: Any, **settings: Any) -> AsyncGenerator[Row]:
    own = {name: settings.pop(name) for name in ("trials", "memory", "stop", "concurrency") if name in settings}
    return evaluate(asked, evaluator(target, **settings).row, **own)


def gathered(asked: Iterable[Question], target: Any, **settings: Any) -> list[Row]:
    """The rows of these questions in their order; the target and its judges are closed."""

    async def gather() -> list[Row]:
        try:
            return [row async for row in evaluated(asked, target, **settings)]
        finally:
            for each in (target, *settings.get("judges", ())):
                await each.aclose()

    return sorted(asyncio.run(gather()), key=lambda row: row.position)


def asked(target: Target, question: Question | str = "Why?", k: int = 5, *, close: bool = False) -> Response:
    """The response to one question, on an event loop of its own."""
    one = Question(id="1", question=question, domain="d") if isinstance(question, str) else question

    async def ask() -> Response:
        try:
            async with asyncio.timeout(30):
                return await target(one, k)
        finally:
            if close:
                await target.aclose()

    return asyncio.run(ask())


def ranked(response: Response) -> list[str | None]:
    assert response.sources is not None
    return [source.chunk_id for source in response.sources]


async def instant(question: Question, k: int, /) -> Response:
    return FOUND


def raising(error: BaseException) -> Target:
    async def ask(question: Question, k: int, /) -> Response:
        raise error

    return PlainTarget(ask)


class Blocking(Target):
    """A target that never answers, and tells which questions it was asked and which were cancelled."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.cancelled: list[str] = []

    async def __call__(self, question: Question, k: int, /) -> Response:
        self.asked.append(question.id)
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.append(question.id)
            raise
        return FOUND


def others() -> set[asyncio.Task[Any]]:
    return asyncio.all_tasks() - {task for task in [asyncio.current_task()] if task}


async def turns(number: int = 50) -> None:
    for _ in range(number):
        await asyncio.sleep(0)


def finish(work: Callable[[], Awaitable[None]], seconds: float = 20) -> None:
    """Run a test's coroutine to its end, which must come in time and leave no task behind."""

    async def whole() -> None:
        async with asyncio.timeout(seconds):
            await work()
        assert others() == set()

    asyncio.run(whole())


class Opinion(Judge):
    """A judge that gives the same score to every answer, or does what it is told first; it tells what it was asked."""

    def __init__(self, name: str = "one", score: float = 0.9, first: Callable[[], Awaitable[object]] = turns) -> None:
        self.name = name
        self.asked: list[tuple[Question, Response]] = []
        self._score, self._first = score, first

    async def __call__(self, question: Question, response: Response, /) -> Verdict:
        self.asked.append((question, response))
        await self._first()
        return Verdict(judge=self.name, reasoning="Because.", overall_score=self._score, accuracy=self._score)


def failing(name: str, error: BaseException) -> Opinion:
    async def fail() -> None:
        raise error

    return Opinion(name, first=fail)
