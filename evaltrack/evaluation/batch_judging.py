"""Judging in batches: all answers first, then their verdicts in files at a lower price, then the rows.

1. Each question is asked; its answer waits in the journal. What has nothing to be judged is a row at once.
2. The first answer that lacks a verdict is judged by a call: what the server refuses is known before a file goes up.
3. The calls that the cache has no verdict for go up, in files of the size that the endpoint takes.
4. Each answer is judged by the replies; what has none, or one that cannot be read, is asked for by a call.

A run that is broken off goes on where it was: batches that are under way stay so at the server.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from typing import Any

from evaltrack.evaluation.ask import Evaluator
from evaltrack.evaluation.batch_files import fetch_replies
from evaltrack.evaluation.batch_journal import BatchJournal
from evaltrack.evaluation.config import EvaluationConfig
from evaltrack.evaluation.journal import Journal
from evaltrack.evaluation.loop import evaluate, evaluate_each
from evaltrack.judges.llm_judge import LlmJudge
from evaltrack.llm import BatchCall, batch_share
from evaltrack.metrics.tokens import Prices
from evaltrack.records import Question, Row

ANSWERING = "answers, to be judged in batches"
STOP_LOOKS = 0.2
"""Seconds between two looks whether the run was asked to stop."""
CALLS_AT_ONCE = 100
"""Answers whose calls are kept in one transaction."""


@dataclass(frozen=True)
class Watch:
    """Whether to stop, and who receives progress and warnings."""

    stop: Callable[[], bool] = lambda: False
    note: Callable[[str, int, int], object] = lambda _phrase, _done, _total: None
    warn: Callable[[str], object] = lambda _: None


def prices_of_judge(settings: EvaluationConfig) -> Prices | None:
    """The prices of the judge; that of a batch is as set, else the server's own where that is known."""
    prices = settings.judge_prices
    if prices is None or prices.batch is not None:
        return prices
    return replace(prices, batch=batch_share())


def judges_in_batches(evaluator: Evaluator) -> list[LlmJudge]:
    """The judges whose verdicts can be asked for in a batch."""
    return [judge for judge in evaluator.judges if isinstance(judge, LlmJudge)]


async def evaluate_in_batches(
    questions: Iterable[Question],
    evaluator: Evaluator,
    journal: Journal,
    watch: Watch,
    *,
    trials: Sequence[int] = (1,),
    concurrency: int,
) -> AsyncGenerator[Row]:
    """Yield one row for each trial of each question, as `evaluate` does, with verdicts from batches.

    Raises:
        UsageError: there is no journal, or the server has no Batch endpoint.
        InconclusiveError: the server or the disk fails for too long; batches that were begun are kept.
    """
    work = _Batching(evaluator, journal, journal.batches(), watch, concurrency)
    for stage in (work.ask(questions, trials), work.prepare(), work.fetch(), work.judge()):
        async with aclosing(stage) as rows:
            async for row in rows:
                yield row
        if watch.stop():
            return


@dataclass(frozen=True)
class _Answers:
    """The memory of the first stage: finished rows, and answers that wait."""

    journal: Journal
    batches: BatchJournal

    def recall(self, question: Question, trial: int, /) -> Row | None:
        return self.journal.recall(question, trial) or self.batches.answer(question, trial)

    def keep(self, rows: Sequence[Row], /) -> None:
        self.journal.keep([row for row in rows if not _waits(row)])
        for row in filter(_waits, rows):
            self.batches.keep_answer(row)


@dataclass(frozen=True)
class _Judged:
    """The memory of the last stage, which begins with answers alone."""

    journal: Journal
    batches: BatchJournal

    def recall(self, _question: Question, _trial: int, /) -> Row | None:
        return None

    def keep(self, rows: Sequence[Row], /) -> None:
        self.journal.keep(rows)
        self.batches.drop_answers(rows)


@dataclass(frozen=True)
class _Verdicts:
    """Makes the row of an answer that waits."""

    evaluator: Evaluator
    batches: BatchJournal
    answers_at_once: bool = False

    async def row(self, position: int, question: Question, trial: int) -> Row:
        answer = self.batches.answer(question, trial)
        if answer is None:  # damaged on disk meanwhile: it is asked again, and judged by a call
            return await self.evaluator.row(position, question, trial)
        return await self.evaluator.judge_row(answer)


@dataclass(frozen=True)
class _Batching:
    """One evaluation under way."""

    evaluator: Evaluator
    journal: Journal
    batches: BatchJournal
    watch: Watch
    concurrency: int

    async def ask(self, questions: Iterable[Question], trials: Sequence[int]) -> AsyncGenerator[Row]:
        """Ask every question; yield the rows that need no verdict."""
        without_judges = replace(self.evaluator, judges=())
        asking = evaluate(
            questions,
            without_judges,
            trials=trials,
            memory=_Answers(self.journal, self.batches),
            stop=self.watch.stop,
            concurrency=self.concurrency,
        )
        num_answers = 0
        async with aclosing(asking) as rows:
            async for row in rows:
                if _waits(row):
                    if not self.batches.is_current(row):  # one of earlier, under the place it has now
                        self.batches.keep_answer(row)
                    num_answers += 1
                    self.watch.note(ANSWERING, num_answers, 0)
                else:
                    yield row

    async def prepare(self) -> AsyncGenerator[Row]:
        """Keep the calls for all verdicts that are lacking; the first of each judge is made at once, and is a row."""
        unproven = {judge.name for judge in judges_in_batches(self.evaluator)}
        waiting = list[tuple[str, BatchCall]]()
        for row in self.batches.answers():
            calls = dict(self._calls(row))
            if not unproven.isdisjoint(calls):
                unproven -= calls.keys()
                yield await self._judge_now(row)
            else:
                waiting += [(row.question.id, call) for call in calls.values()]
            if len(waiting) >= CALLS_AT_ONCE:
                self.batches.add_calls(waiting)
                waiting.clear()
                await asyncio.sleep(0)
            if self.watch.stop():
                break
        self.batches.add_calls(waiting)

    def _calls(self, row: Row) -> Iterator[tuple[str, BatchCall]]:
        """The calls that an answer needs and that are not kept yet, by judge."""
        assert row.response is not None
        question = row.question.in_wording(row.wording)
        for judge in judges_in_batches(self.evaluator):
            call = judge.on_trial(row.trial or 1).batch_call(question, row.response)
            if call is not None and not self.batches.has_call(call.key):
                yield judge.name, call

    async def _judge_now(self, row: Row) -> Row:
        """Judge one answer by calls."""
        judged = await self.evaluator.judge_row(row)
        _Judged(self.journal, self.batches).keep([judged])
        return judged

    async def fetch(self) -> AsyncGenerator[Row]:
        """Send the calls up and wait for their replies, or until the run is asked to stop; yields nothing."""
        await _until(fetch_replies(self.batches, self.watch.note, self.watch.warn), self.watch.stop)
        return
        yield

    async def judge(self) -> AsyncGenerator[Row]:
        """Make the rows of all answers."""
        judges = [
            judge.with_replies(self.batches.reply) if isinstance(judge, LlmJudge) else judge
            for judge in self.evaluator.judges
        ]
        judging = evaluate_each(
            ((row.position, row.question, row.trial or 1) for row in self.batches.answers()),
            _Verdicts(replace(self.evaluator, judges=judges), self.batches),
            memory=_Judged(self.journal, self.batches),
            stop=self.watch.stop,
            concurrency=self.concurrency,
        )
        async with aclosing(judging) as rows:
            async for row in rows:
                yield row


def _waits(row: Row) -> bool:
    """Whether a row of the first stage has an answer to be judged."""
    return row.failure is None and row.response is not None and row.response.answer is not None and not row.verdicts


async def _until(work: Coroutine[Any, Any, None], stop: Callable[[], bool]) -> None:
    """Do some work to its end, or break it off once `stop` says so."""
    task = asyncio.ensure_future(work)
    try:
        while not task.done() and not stop():
            await asyncio.wait({task}, timeout=STOP_LOOKS)
        if task.done():
            task.result()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.gather(task, return_exceptions=True)
