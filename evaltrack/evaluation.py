"""One evaluation from end to end: golden set and target in, one MLflow run and a `RunResult` out.

Everything that can be wrong is found before the run is opened. From then on the run always ends: FINISHED, FAILED or
KILLED, holding what was done so far.
"""

from __future__ import annotations

import asyncio
import math
import os
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, Protocol

from evaltrack import __version__
from evaltrack.errors import UsageError
from evaltrack.golden import GoldenSet, open_golden
from evaltrack.records import METRICS_VERSION, Row, Signature, Target
from evaltrack.report.machine import run_summary
from evaltrack.report.markdown import run_note
from evaltrack.result import SHOWN_ROWS, RunResult
from evaltrack.run import CONCURRENCY, TIMEOUT, evaluate
from evaltrack.scores import Summary
from evaltrack.targets import default_target, open_target
from evaltrack.tracking.reader import read_rows
from evaltrack.tracking.store import Store, connect
from evaltrack.tracking.writer import Dataset, OpenRun, RunWriter, Status, TraceChoice, close_run, open_run

MAX_K = 1000
MAX_CONCURRENCY = 1024


class Progress(Protocol):
    """Hears how an evaluation goes. All calls come from one thread."""

    def start(self, total: int) -> None:
        """The run is open and `total` questions are about to be asked."""

    def advance(self, row: Row) -> None:
        """One question finished."""

    def note(self, phrase: str, done: int, total: int) -> None:
        """Something else is under way; `total` is 0 where it is not known."""


class Silent:
    """A `Progress` that says nothing."""

    def start(self, total: int) -> None:
        """Say nothing."""

    def advance(self, row: Row) -> None:
        """Say nothing."""

    def note(self, phrase: str, done: int, total: int) -> None:
        """Say nothing."""


@dataclass(frozen=True)
class Settings:
    """Everything that shapes an evaluation besides golden set and target; each is logged as a param.

    `timeout` is in seconds, for each question. `traces` chooses the questions that get an MLflow trace; `auto` is all
    of them up to 1,000 and none above.
    """

    k: int = 5
    concurrency: int = CONCURRENCY
    timeout: float = TIMEOUT
    traces: TraceChoice = "auto"

    def check(self) -> None:
        """Refuse values that no evaluation can be run with.

        Raises:
            UsageError: the message names the first one.
        """
        if not 1 <= self.k <= MAX_K:
            raise UsageError(f"k is {self.k}; write a whole number from 1 to {MAX_K}")
        if not 1 <= self.concurrency <= MAX_CONCURRENCY:
            raise UsageError(f"concurrency is {self.concurrency}; write a whole number from 1 to {MAX_CONCURRENCY}")
        if not 0 < self.timeout < math.inf:
            raise UsageError(f"timeout is {self.timeout}; write a number of seconds above 0")


def run_eval(
    golden_path: str | os.PathLike[str],
    k: int = 5,
    *,
    target: str | Callable[..., Any] | None = None,
    experiment: str | None = None,
    run_name: str | None = None,
    concurrency: int = CONCURRENCY,
    timeout: float = TIMEOUT,
    traces: TraceChoice = "auto",
    tracking_uri: str | None = None,
    progress: Progress | None = None,
) -> RunResult:
    """Evaluate a target on a golden set, as one MLflow run.

    Args:
        golden_path: A `.jsonl` or `.json` golden set.
        k: How many of the retrieved sources are scored, from 1 to 1,000.
        target: A target's name (``"bm25:docs"``), your own function (see `evaltrack.targets.python`), or None for BM25
            over the corpus beside the golden set.
        experiment: MLflow experiment by name, created where there is none; None follows MLflow's own settings.
        run_name: Name of the run; None makes one from golden set, target and k.
        concurrency: Questions in flight at once.
        timeout: Seconds for each question.
        traces: Which questions get an MLflow trace.
        tracking_uri: MLflow store; None follows MLflow's own settings.
        progress: Hears how it goes.

    Raises:
        UsageError: golden set, target or a setting is wrong; nothing was run.
        TrackingError: the MLflow store is out of reach, or does not hold what was written.
        KeyboardInterrupt: it was stopped; the run is KILLED and holds what was done.
    """
    settings = Settings(k, concurrency, timeout, traces)
    settings.check()
    golden = open_golden(golden_path)
    if golden.stats.judged_only == len(golden):
        raise UsageError(
            f"{golden.path}: no question has expected_chunks or expected_sources, so nothing could be measured"
        )
    asked, named = _named_target(target, golden)
    signature = Signature(golden=golden.name, golden_digest=golden.digest, k=k, target=named)
    store = connect(tracking_uri)
    run = open_run(
        store,
        experiment=experiment,
        name=run_name or f"{golden.name} {named.partition(':')[0]} k={k}",
        params={"golden": str(golden.path), "target": named, "model": "none"}
        | {n: f"{v:g}" if isinstance(v, float) else str(v) for n, v in asdict(settings).items()},
        tags=_tags(signature),
        data=Dataset(golden.name, golden.digest, str(golden.path.resolve()), len(golden)),
    )
    return _fill(store, run, golden, asked, signature, settings, progress or Silent())


def _named_target(target: str | Callable[..., Any] | None, golden: GoldenSet) -> tuple[Target, str]:
    if target is None or isinstance(target, str):
        name = target or default_target(golden.path)
        return open_target(name), name
    from evaltrack.targets.python import function_target

    return function_target(
        target
    ), f"python:{target.__module__}:{getattr(target, '__qualname__', type(target).__name__)}"


def _tags(signature: Signature) -> dict[str, str]:
    return {
        "evaltrack.version": __version__,
        "evaltrack.metrics_version": str(METRICS_VERSION),
        "evaltrack.golden": signature.golden,
        "evaltrack.golden_digest": signature.golden_digest,
        "evaltrack.signature": signature.model_dump_json(),
    }


def _fill(
    store: Store,
    run: OpenRun,
    golden: GoldenSet,
    target: Target,
    signature: Signature,
    settings: Settings,
    progress: Progress,
) -> RunResult:
    """Ask all questions and log everything; whatever happens, the run ends."""
    summary, kept = Summary(settings.k), _Kept()
    stopped: BaseException | None = None
    try:
        with RunWriter(store, run, settings.k) as writer:
            progress.start(len(golden))
            try:
                _ask_all(golden, target, settings, [writer.add, summary.add, kept.add, progress.advance])
            except BaseException as error:  # noqa: BLE001 - raised again once the run is closed
                stopped = error
            result = _result(store, run, signature, summary, kept, _status(summary, stopped))
            writer.log_rows(settings.traces, progress.note)
            writer.log_summary(result.logged_metrics(), run_summary(result), run_note(result))
    except BaseException as error:
        close_run(store, run.run_id, "KILLED" if isinstance(error, KeyboardInterrupt) else "FAILED")
        raise
    close_run(store, run.run_id, result.status)
    if stopped is not None:
        raise stopped
    return result


def _ask_all(golden: GoldenSet, target: Target, settings: Settings, takers: list[Callable[[Row], None]]) -> None:
    async def ask() -> None:
        rows = evaluate(golden, target, k=settings.k, concurrency=settings.concurrency, timeout=settings.timeout)
        try:
            async for row in rows:
                for take in takers:
                    take(row)
        finally:
            await rows.aclose()

    _run_to_end(ask)


def _run_to_end(work: Callable[[], Any]) -> None:
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
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            raised.append(error)

    thread = threading.Thread(target=run, name="evaltrack-run")
    thread.start()
    thread.join()
    if raised:
        raise raised[0]


class _Kept:
    """The first rows that failed or did not pass, in the order of the golden set, for the renderings."""

    def __init__(self) -> None:
        self.errors: list[Row] = []
        self.missed: list[Row] = []

    def add(self, row: Row) -> None:
        kept = self.errors if row.failure else self.missed if row.passed is False else None
        if kept is not None:
            kept.append(row)
            kept.sort(key=lambda row: row.position)
            del kept[SHOWN_ROWS:]


def _status(summary: Summary, stopped: BaseException | None) -> Status:
    if isinstance(stopped, KeyboardInterrupt | asyncio.CancelledError):
        return "KILLED"
    return "FINISHED" if stopped is None and summary.num_measured else "FAILED"


def _result(
    store: Store, run: OpenRun, signature: Signature, summary: Summary, kept: _Kept, status: Status
) -> RunResult:
    return RunResult(
        run_id=run.run_id,
        experiment_id=run.experiment_id,
        status=status,
        signature=signature,
        metrics=summary.metrics,
        counts=summary.counts,
        totals=summary.totals,
        groups=summary.groups,
        seconds=summary.seconds(),
        errors=tuple(kept.errors),
        missed=tuple(kept.missed),
        link=store.run_link(run.experiment_id, run.run_id),
        serve_command=store.serve_command,
        read_rows=partial(read_rows, store, run.run_id),
    )
