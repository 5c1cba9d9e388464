"""The run loop: ask the target every question, score what comes back, yield a row.

It knows neither files nor MLflow; a `Memory`, where there is one, has each row before it is yielded. A failure stays
in its row; only a fault of evaltrack itself, of the golden set or a Ctrl-C ends the loop early, and then no task is
left behind.

Of several trials of a question one row is made. A score is its mean over the trials that measured it, and so is the
share of trials that passed. A question passes when more than half of its measured trials did; it is not measured where
no more than half of its trials were. There is also *pass@n* (did one of the n trials pass: Chen et al. 2021, section
2.1, with k = n), *pass^n* (did all of them: Yao et al. 2024, tau-bench, section 4) and whether it is *flaky* (some did,
some did not).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Callable, Coroutine, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Protocol, TypeVar

from evaltrack.metrics.catalogue import OF_TRIALS
from evaltrack.records import Closable, Question, Row, Tally, Tokens
from evaltrack.records.row import seconds_now

T = TypeVar("T")
CONCURRENCY = 16

Numbered = tuple[int, Question, int]
"""The position of a question, the question, and the number of its trial."""

STOP_SECONDS = 5.0
"""How long the questions in flight may take to stop."""


class Memory(Protocol):
    """Rows that were finished earlier and must not be made again: the journal."""

    def recall(self, question: Question, trial: int, /) -> Row | None:
        """Return the finished row of this trial; None where the question must be asked."""
        ...

    def keep(self, rows: Sequence[Row], /) -> None:
        """Make rows durable, all or none."""
        ...


class RowMaker(Protocol):
    """Makes the row of one trial of a question: an `Evaluator`."""

    def row(self, position: int, question: Question, trial: int) -> Coroutine[Any, Any, Row]:
        """Return the row; a failure stays in it."""
        ...


async def evaluate(
    questions: Iterable[Question],
    evaluator: RowMaker,
    *,
    trials: Sequence[int] = (1,),
    memory: Memory | None = None,
    stop: Callable[[], bool] = lambda: False,
    concurrency: int = CONCURRENCY,
) -> AsyncGenerator[Row]:
    """Give one row for each trial of each question, in the order in which they finish.

    At most `concurrency` questions are in flight. What `memory` recalls is not asked again, and what is new is kept
    there before it is yielded. The space needed does not grow with the questions. Once `stop` says so no question is
    begun, and those in flight are finished; closing the generator breaks them off.
    """
    numbered = ((*one, trial) for one in enumerate(questions) for trial in trials)
    loop = _Loop(evaluator, memory, stop, numbered)
    finished = asyncio.Queue[Row | None](concurrency)
    workers = [asyncio.create_task(loop.work(finished)) for _ in range(concurrency)]

    async def end() -> None:
        await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
        await finished.put(None)

    ending = asyncio.create_task(end())
    try:
        while row := await finished.get():
            yield row
        for worker in workers:
            if worker.done():
                worker.result()  # raises what ended it: the golden set changed, or a fault of our own
    finally:
        loop.stopping = True
        await _cancel({ending, *workers})
        loop.save()


@dataclass
class _Loop:
    """What the workers share: the questions still to ask, and the rows that are not kept yet."""

    evaluator: RowMaker
    memory: Memory | None
    stop: Callable[[], bool]
    numbered: Iterator[Numbered]
    unsaved: list[Row] = field(default_factory=list)
    """Rows whose workers wait until they are kept."""

    saved: asyncio.Future[None] = field(init=False)
    stopping: bool = False

    async def work(self, finished: asyncio.Queue[Row | None]) -> None:
        for position, question, trial in self.numbered:
            if self.stopping or self.stop():
                return
            await finished.put(await self._row(position, question, trial))
            await asyncio.sleep(0)  # else one whose target answers at once would fill all places

    async def _row(self, position: int, question: Question, trial: int) -> Row:
        """A row that is durable: until it is, its worker begins nothing else, and no more than that can be lost."""
        earlier = self.memory.recall(question, trial) if self.memory else None
        if earlier is not None:  # under the position and labels that its question has now
            return earlier.model_copy(update={"position": position, "question": question})
        row = await self.evaluator.row(position, question, trial)
        if self.memory:
            await self._keep(row)
        return row

    async def _keep(self, row: Row) -> None:
        """Keep a row together with those that finish in the same turn of the event loop: they share one commit."""
        if not self.unsaved:
            loop = asyncio.get_running_loop()
            self.saved = loop.create_future()
            loop.call_soon(self.save)
        self.unsaved.append(row)
        await asyncio.shield(self.saved)  # one worker that is cancelled takes it from no other

    def save(self) -> None:
        """Keep what is not kept yet."""
        rows, self.unsaved = self.unsaved, []
        if not rows or self.memory is None:
            return
        try:
            self.memory.keep(rows)
        except Exception as error:
            self.saved.set_exception(error)
        else:
            self.saved.set_result(None)


async def _cancel(tasks: set[asyncio.Task[None]]) -> None:
    """Cancel until all have ended: a target may swallow a cancellation, and one that hangs for ever is left behind."""
    deadline = time.monotonic() + STOP_SECONDS
    while tasks and time.monotonic() < deadline:
        for task in tasks:
            task.cancel()
        _, tasks = await asyncio.wait(tasks, timeout=0.1)


def take_all(
    asking: Callable[[], AsyncGenerator[T]],
    take: Callable[[T], object],
    opened: Iterable[Closable],
    runner: asyncio.Runner | None = None,
) -> None:
    """Run a loop to its end and hand each row on; targets and judges that were `opened` are closed, come what may.

    With a `runner` they stay open, as it may ask them again.
    """

    async def work() -> None:
        rows = asking()
        try:
            async for row in rows:
                take(row)
        finally:
            await rows.aclose()
            if runner is None:
                await close_all(opened)

    run_to_end(work, runner)


async def close_all(opened: Iterable[Closable]) -> None:
    """Close targets and judges."""
    for each in opened:
        await each.aclose()


def run_to_end(work: Callable[[], Any], runner: asyncio.Runner | None = None) -> None:
    """`asyncio.run`, or that of a runner, also where a loop is already running (a notebook): then in another thread."""
    run_here = runner.run if runner else asyncio.run
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        run_here(work())
        return
    raised: list[BaseException] = []

    def run() -> None:
        try:
            run_here(work())
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run, name="evaltrack-run")
    thread.start()
    thread.join()
    if raised:
        raise raised[0]


class Gathering:
    """Collects the trials of each question and hands on one merged row when the last of them is in.

    It holds only questions whose trials are under way.
    """

    def __init__(self, trials: int, take: Callable[[Row], None]) -> None:
        self._trials, self._take = trials, take
        self._waiting: dict[int, list[Row]] = {}

    def add(self, row: Row) -> None:
        """Take one trial."""
        if self._trials == 1:
            self._take(row)
            return
        rows = self._waiting.setdefault(row.position, [])
        rows.append(row)
        if len(rows) == self._trials:
            self._take(merge(self._waiting.pop(row.position)))

    def close(self) -> None:
        """Merge what there is of the questions that were broken off."""
        for position in sorted(self._waiting):
            self._take(merge(self._waiting.pop(position), self._trials))


def merge(trials: Sequence[Row], num_trials: int | None = None) -> Row:
    """One row for all trials of a question, of which there should be `num_trials`.

    Its answer, sources and verdicts are those of the first trial that ended as the question did. Where too few trials
    could be measured it is the first failure.
    """
    by_trial = sorted(trials, key=lambda row: row.trial or 0)
    tally = _tally(by_trial, num_trials or len(by_trial))
    outcome = tally.majority
    alike = [row for row in by_trial if row.passed is outcome] or by_trial
    example = next((row for row in alike if row.response is not None), alike[0])
    means = {} if example.response is None else _means(by_trial)
    own = {} if outcome is None else {"pass": tally.passed / tally.measured} | _of_trials(tally)
    unmeasured = dict(example.unmeasured)
    for name in OF_TRIALS:
        if name not in own:
            unmeasured[name] = f"{tally.measured} of {tally.trials} trials were measured"
    return example.model_copy(
        update={
            "trial": None,
            "tally": tally,
            "passed": outcome,
            "scores": means | own,
            "unmeasured": {name: why for name, why in unmeasured.items() if name not in means | own},
            "tokens": _tokens(by_trial),
            "seconds": sum(row.seconds for row in by_trial) / len(by_trial),
            "started_at": min(row.started_at for row in by_trial),
        }
    )


def _means(rows: Sequence[Row]) -> dict[str, float]:
    """The mean of each score over the trials that measured it, in the order of the first that did."""
    names = dict.fromkeys(name for row in rows for name in row.scores)
    values = {name: [row.scores[name] for row in rows if name in row.scores] for name in names}
    return {name: float(sum(map(Fraction, each)) / len(each)) for name, each in values.items() if name != "pass"}


def _tally(trials: Sequence[Row], num_trials: int) -> Tally:
    measured = [row.passed for row in trials if row.passed is not None]
    return Tally(trials=num_trials, measured=len(measured), passed=sum(measured))


def _of_trials(tally: Tally) -> dict[str, float]:
    """Scores of trials, where every trial was measured: a question known by part of them biases means."""
    if tally.measured < tally.trials:
        return {}
    scores = {
        "pass_at_n": tally.passed > 0,
        "pass_hat_n": tally.passed == tally.trials,
        "flaky": 0 < tally.passed < tally.trials,
    }
    return {name: float(value) for name, value in scores.items()}


def _tokens(rows: Sequence[Row]) -> Tokens | None:
    """Tokens of one trial: the mean, rounded to a whole number."""
    tokens = [row.tokens for row in rows if row.tokens is not None]
    if not tokens:
        return None
    return tokens[0].model_copy(update={"count": round(sum(each.count for each in tokens) / len(tokens))})


class Progress(Protocol):
    """Receives the progress of an evaluation. All calls come from one thread.

    It may have a method ``opened(run_id, resuming)``, too: a run is open, and nothing is asked yet; `resuming` is the
    command that goes on with it, if one can.
    """

    def start(self, total: int) -> None:
        """The run is open and `total` questions are about to be asked."""

    def advance(self, row: Row) -> None:
        """One question finished."""

    def note(self, phrase: str, done: int, total: int) -> None:
        """Something else is under way; `total` is 0 where it is not known."""

    def warn(self, text: str) -> None:
        """Something is likely wrong; said once, while there is time to stop."""


class Silent:
    """A `Progress` that says nothing."""

    def start(self, *_: Any, **__: Any) -> None:
        """Say nothing."""

    advance = note = warn = start


class Pace:
    """The speed since `start`, of `total` questions."""

    def __init__(self) -> None:
        self.start(0)

    def start(self, total: int) -> None:
        """Begin at 0."""
        self.done = self.earlier = self.errors = 0
        self.total, self._start, self._started_at = total, time.monotonic(), seconds_now()

    def add(self, row: Row) -> bool:
        """Count a finished question; returns whether its row was there before the start."""
        is_earlier = row.started_at < self._started_at
        self.done += 1
        self.earlier += is_earlier
        self.errors += row.failure is not None
        return is_earlier

    @property
    def rate(self) -> float:
        """Questions that were asked in a second; 0 where none was yet."""
        return (self.done - self.earlier) / max(time.monotonic() - self._start, 1e-9)

    @property
    def seconds_left(self) -> float | None:
        """For the other questions at this speed; None where no question was asked yet."""
        return (self.total - self.done) / self.rate if self.rate else None
