"""Makes the rows of all questions concurrently, stores them so that a run can resume, and merges trials into one row.

The loop does not use MLflow. With a `Journal` each row is stored before it is yielded. A failure is stored in its row.
Only an error of evaltrack itself, a changed golden set or Ctrl-C ends the loop early, and then all tasks are cancelled.

Several trials of a question are merged into one row. A score is its mean over the trials that measured it, and so is
the share of passed trials. A question passes if more than half of its measured trials passed. It is not measured if at
most half of its trials were. There are also *pass@n* (at least one of the n trials passed: Chen et al. 2021, section
2.1, with k = n), *pass^n* (all of them passed: Yao et al. 2024, tau-bench, section 4) and *flaky* (some passed, some
did not).
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable, Sequence
from fractions import Fraction
from typing import Any, TypeVar

from evaltrack.evaluation.journal import Journal
from evaltrack.metrics.catalogue import OF_TRIALS
from evaltrack.records import Closable, Question, Row
from evaltrack.records.row import LABELS, majority

T = TypeVar("T")
CONCURRENCY = 16

STOP_SECONDS = 5.0
"""Seconds that questions in flight may take to stop."""


MakeRow = Callable[[int, Question, int], Awaitable[Row]]
"""Returns the row of one trial of a question, which also holds any failure: the method `row` of an `Evaluator`."""


async def evaluate(
    questions: Iterable[Question],
    make_row: MakeRow,
    *,
    trials: Sequence[int] = (1,),
    memory: Journal | None = None,
    stop: Callable[[], bool] = lambda: False,
    concurrency: int = CONCURRENCY,
) -> AsyncGenerator[Row]:
    """Yield one row for each trial of each question, in the order in which they finish.

    At most `concurrency` questions are in flight. Rows that `memory` recalls are reused, and new ones are stored there
    before they are yielded. Memory use does not grow with the number of questions. After `stop` returns True no
    question is started, and those in flight are finished. Closing the generator cancels them.
    """
    numbered = ((*one, trial) for one in enumerate(questions) for trial in trials)
    finished = asyncio.Queue[Row | None](concurrency)
    stopping = False

    async def work() -> None:
        for position, question, trial in numbered:
            if stopping or stop():
                return
            row = memory.recall(question, trial) if memory else None
            if row is not None:
                labels = {name: getattr(question, name) for name in LABELS}  # may have been edited
                row = row.model_copy(update={"position": position, **labels})
            else:
                row = await make_row(position, question, trial)
                if memory:
                    memory.keep(row)
            await finished.put(row)
            await asyncio.sleep(0)  # else a target that answers at once would fill all places

    workers = [asyncio.create_task(work()) for _ in range(concurrency)]

    async def end() -> None:
        await asyncio.wait(workers, return_when=asyncio.FIRST_EXCEPTION)
        await finished.put(None)

    ending = asyncio.create_task(end())
    try:
        while row := await finished.get():
            yield row
        for worker in workers:
            if worker.done():
                worker.result()  # raises the error that ended it: the golden set changed, or a bug of ours
    finally:
        stopping = True
        await _cancel({ending, *workers})


async def _cancel(tasks: set[asyncio.Task[None]]) -> None:
    """Cancel tasks repeatedly, as a target may ignore a cancellation; tasks that still hang are abandoned."""
    deadline = time.monotonic() + STOP_SECONDS
    while tasks and time.monotonic() < deadline:
        for task in tasks:
            task.cancel()
        _, tasks = await asyncio.wait(tasks, timeout=0.1)


def take_all(
    rows: AsyncGenerator[T],
    take: Callable[[T], object],
    opened: Iterable[Closable],
    runner: asyncio.Runner | None = None,
) -> None:
    """Run a loop to its end and pass each row to `take`; targets and judges in `opened` are closed in every case.

    With a `runner` they remain open, as it may ask them again.
    """

    async def work() -> None:
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
    """Run like `asyncio.run` or a runner's `run`; if a loop is already running (a notebook), in another thread."""
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
    """Collects the trials of each question and passes on one merged row when all are finished.

    It holds only questions with unfinished trials.
    """

    def __init__(self, trials: int, take: Callable[[Row], None]) -> None:
        self._trials, self._take = trials, take
        self._waiting: dict[int, list[Row]] = {}

    def add(self, row: Row) -> None:
        """Add one trial."""
        if self._trials == 1:
            self._take(row)
            return
        rows = self._waiting.setdefault(row.position, [])
        rows.append(row)
        if len(rows) == self._trials:
            self._take(merge(self._waiting.pop(row.position)))

    def close(self) -> None:
        """Merge the finished trials of interrupted questions."""
        for position in sorted(self._waiting):
            self._take(merge(self._waiting.pop(position), self._trials))


def merge(trials: Sequence[Row], num_trials: int | None = None) -> Row:
    """Merge all trials of a question, of which there should be `num_trials`, into one row.

    Its answer, sources and verdicts are those of the first trial with the question's outcome. If too few trials were
    measured, it is the first failure.
    """
    by_trial = sorted(trials, key=lambda row: row.trial or 0)
    measured = [row.passed for row in by_trial if row.passed is not None]
    num_trials, passes = num_trials or len(by_trial), sum(measured)
    outcome = majority(passes, len(measured), num_trials)
    alike = [row for row in by_trial if row.passed is outcome] or by_trial
    example = next((row for row in alike if not row.target_failed), alike[0])
    scores = {} if example.target_failed else _means(by_trial)
    if outcome is not None:
        scores["pass"] = passes / len(measured)
        if len(measured) == num_trials:  # else the means of these scores would be biased
            together = {"pass_at_n": passes > 0, "pass_hat_n": passes == num_trials, "flaky": 0 < passes < num_trials}
            scores |= {name: float(value) for name, value in together.items()}
    too_few = f"{len(measured)} of {num_trials} trials were measured"
    unmeasured = dict(example.unmeasured) | dict.fromkeys(OF_TRIALS, too_few)
    return example.model_copy(
        update={
            "trial": None,
            "trials": len(measured),
            "passes": passes,
            "passed": outcome,
            "scores": scores,
            "unmeasured": {name: why for name, why in unmeasured.items() if name not in scores},
            "tokens_known": next(filter(None, (row.tokens_known for row in by_trial)), None),
            "seconds": sum(row.seconds for row in by_trial) / len(by_trial),
            "started_at": min(row.started_at for row in by_trial),
        }
    )


def _means(rows: Sequence[Row]) -> dict[str, float]:
    """Return the mean of each score over the trials that measured it, in the order of the first trial."""
    names = dict.fromkeys(name for row in rows for name in row.scores)
    values = {name: [row.scores[name] for row in rows if name in row.scores] for name in names}
    return {name: float(sum(map(Fraction, each)) / len(each)) for name, each in values.items() if name != "pass"}


class Progress:
    """Receives the progress of an evaluation, and reports nothing. All calls come from one thread."""

    def opened(self, run_id: str, resuming: str) -> None:
        """Called when a run is open and nothing has been asked; `resuming` is the command that resumes it, or ""."""

    def start(self, total: int) -> None:
        """Called when the run is open and `total` questions will be asked."""

    def advance(self, row: Row) -> None:
        """Called when a question is finished."""

    def note(self, phrase: str, done: int, total: int) -> None:
        """Called when another phase makes progress; `total` is 0 if it is unknown."""

    def warn(self, text: str) -> None:
        """Called once if something is likely wrong, while the run can still be stopped."""
