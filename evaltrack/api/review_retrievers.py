"""The targets whose chunks a person sees while reviewing: asked beside the page, each question once."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass

from evaltrack.errors import EvaltrackError
from evaltrack.evaluation.ask import TIMEOUT, Evaluator
from evaltrack.evaluation.loop import close_all
from evaltrack.golden.review.pool import Shown, shown_source
from evaltrack.metrics.measure import Rules
from evaltrack.privacy.redaction import Redactor
from evaltrack.records import Question, Target
from evaltrack.targets import open_target

REMEMBERED = 500
"""Questions whose chunks are remembered."""

CLOSING = 10.0
"""Seconds that the targets have to close."""


@dataclass(frozen=True)
class Ranked:
    """What the targets returned for a question: a ranking of each, and why one has none."""

    rankings: Sequence[Sequence[Shown]]
    problems: Sequence[str]


class Retrievers:
    """Targets that are asked in a thread of their own; a question is asked once, ahead of time where it is known."""

    def __init__(
        self, names: Sequence[str], k: int, timeout: float = TIMEOUT, options: Mapping[str, str] | None = None
    ) -> None:
        self._opened: list[Target] = []
        try:
            for name in names:
                self._opened.append(open_target(name, options))
        except BaseException:
            self._close_targets()
            raise
        self._k, self._names = k, names
        self._evaluators = [
            Evaluator(each, Rules(k=k), timeout=timeout, redactor=Redactor.with_environment(secrets=each.secrets))
            for each in self._opened
        ]
        self._futures: OrderedDict[tuple[str, str], Future[Ranked]] = OrderedDict()
        self._lock = threading.Lock()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True, name="evaltrack-review")
        self._thread.start()

    def ask(self, question: Question) -> Future[Ranked]:
        """Ask the targets, unless they were or are being asked the same."""
        key = (question.domain, question.question)
        with self._lock:
            if (future := self._futures.get(key)) is None:
                future = self._futures[key] = asyncio.run_coroutine_threadsafe(self._ranked(question), self._loop)
                while len(self._futures) > REMEMBERED:
                    self._futures.popitem(last=False)
            self._futures.move_to_end(key)
            return future

    async def _ranked(self, question: Question) -> Ranked:
        outcomes = await asyncio.gather(*(self._ranking(number, question) for number in range(len(self._evaluators))))
        return Ranked(
            [each for each in outcomes if not isinstance(each, str)],
            [each for each in outcomes if isinstance(each, str)],
        )

    async def _ranking(self, number: int, question: Question) -> list[Shown] | str:
        """The first k sources of one target, or why there are none."""
        try:
            row = await self._evaluators[number].row(0, question, 1)
        except EvaltrackError as error:
            return f"{self._names[number]}: {error.message}"
        if row.failure is not None or row.response is None:
            return f"{self._names[number]}: {row.failure}"
        return [shown_source(source) for source in (row.response.sources or ())[: self._k]]

    def close(self) -> None:
        """Break off what is being asked, and close the targets."""
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(CLOSING)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSING)
        if not self._thread.is_alive():
            self._loop.close()
        self._close_targets()

    async def _end(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await close_all(self._opened)

    def _close_targets(self) -> None:
        for each in self._opened:
            each.close()
