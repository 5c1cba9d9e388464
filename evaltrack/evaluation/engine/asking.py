"""Ask the questions of a plan where its settings say: in this process, or by the workers of an engine."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

from evaltrack import __version__
from evaltrack.errors import EvaltrackError
from evaltrack.evaluation.command import Command
from evaltrack.evaluation.engine.finalise import RowsInOrder
from evaltrack.evaluation.engine.folder import WorkFolder
from evaltrack.evaluation.engine.orders import Manifest, Order, PartEnd
from evaltrack.evaluation.engine.plan import part_size
from evaltrack.evaluation.engine.prepare import gather, prepare
from evaltrack.evaluation.journal import Journal
from evaltrack.evaluation.judge_opening import judges_of
from evaltrack.evaluation.loop import Watch
from evaltrack.evaluation.plan import Plan
from evaltrack.records import Row

OWN_VARIABLES = ("OPENAI_", "EVALTRACK_")
"""How the names of the variables begin that workers are given."""
STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)
HEADER = "header."
"""How the settings of a target begin whose values name variables."""
NOTE_SECONDS = 0.5

TakeRow = Callable[[Row], object]


class Ask(Protocol):
    """Asks all questions, hands on each row, and gives what is worth knowing of the asking.

    Rows that are made together are handed on together where somebody takes blocks of them.
    """

    def __call__(self, take: TakeRow, watch: Watch, /) -> tuple[str, ...]:
        """Ask them."""
        ...


class Engine(Protocol):
    """Workers of a cluster. `num_cpus` is how many there can be at once."""

    name: str
    num_cpus: int

    def run(
        self, orders: list[Order], environment: dict[str, str], workers: int, watch: Watch
    ) -> Iterator[PartEnd | None]:
        """Have at most so many workers at once carry out orders, and yield how each part ended.

        None now and then meanwhile. A part whose worker died is ordered again. Once `watch.stop` says so no part is
        begun. Closing the generator breaks off what is under way.
        """
        ...


@contextmanager
def asking_of(plan: Plan, journal: Journal) -> Iterator[Ask]:
    """What asks the questions of a plan; an engine is connected meanwhile.

    Raises:
        UsageError: the cluster cannot be reached, or the shared folder not be made.
        InconclusiveError: what workers did before cannot be taken over.
    """
    if plan.settings.engine == "local":
        gather(journal)
        yield partial(_ask_here, plan, journal)
        return
    _ = plan.target.packages  # looked up now: Ray adds folders of its own to where modules are searched
    settings, handlers, stack = plan.settings, _handlers(), ExitStack()
    folder = WorkFolder.of_run(journal.name, settings.engine_folder)
    try:
        folder.make()
        engine = stack.enter_context(_connected(settings.engine, settings.engine_address))
    except BaseException:
        if not journal.is_of_a_run:  # there is nothing to go on with
            journal.remove()
            folder.remove()
        raise
    with stack:
        for number, handler in handlers.items():  # Ray and Spark set their own, which end the process
            signal.signal(number, handler)
        yield partial(ask_on, engine, plan, journal)


def _handlers() -> dict[signal.Signals, Any]:
    """Who handles the signals that stop a run, in the thread that may say so."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    return {number: handler for number in STOP_SIGNALS if (handler := signal.getsignal(number)) is not None}


def _connected(name: str, address: str) -> AbstractContextManager[Engine]:
    if name == "ray":
        from evaltrack.evaluation.engine.ray import connected_ray

        return connected_ray(address)
    from evaltrack.evaluation.engine.spark import connected_spark

    return connected_spark(address)


def _ask_here(plan: Plan, journal: Journal, take: TakeRow, watch: Watch) -> tuple[str, ...]:
    plan.ask(take, memory=journal, watch=watch)
    return ()


def ask_on(engine: Engine, plan: Plan, journal: Journal, take: TakeRow, watch: Watch) -> tuple[str, ...]:
    """Ask the questions by the workers of an engine, whose rows are handed on one by one.

    Raises:
        EvaltrackError: what a worker raised, once the others have finished the questions in flight.
    """
    settings, golden = plan.settings, plan.golden
    workers = settings.engine_workers or max(1, min(engine.num_cpus, settings.concurrency))
    share = settings.concurrency // workers
    folder = WorkFolder.of_run(journal.name, settings.engine_folder)
    size = part_size(len(golden), workers, share)
    manifest = prepare(folder, golden, journal, size=size, rounds=settings.trials)
    rows = RowsInOrder(folder, manifest, settings.trials, take)
    work = _Work(engine, plan, folder, manifest, rows, watch)
    try:
        notes = work.done(workers, share)
    except BaseException:
        folder.ask_to_stop()
        rows.rest()
        raise
    rows.rest()
    return notes


@dataclass
class _Work:
    """The parts of one run under way."""

    engine: Engine
    plan: Plan
    folder: WorkFolder
    manifest: Manifest
    rows: RowsInOrder
    watch: Watch
    noted_at: float = 0.0
    counts: dict[int, int] = field(default_factory=dict)
    """Rows of the parts that were done meanwhile."""

    def done(self, workers: int, share: int) -> tuple[str, ...]:
        """Have all parts done that have no receipt; the notes of the workers."""
        orders, notes = list[Order](), dict[str, tuple[str, ...]]()
        fault: EvaltrackError | None = None
        done = {receipt.part: receipt for receipt in self.folder.receipts([p.number for p in self.manifest.parts])}
        for order in self._orders(share):
            if receipt := done.get(order.part.number):
                self.rows.add(receipt)
            else:
                orders.append(order)
        ends = self.engine.run(orders, environment_of(self.plan.command), workers, self.watch)
        try:
            for end in ends:
                if end is None:
                    self._look(orders)
                elif end.receipt is not None:
                    notes[end.receipt.worker] = end.receipt.notes
                    self.counts[end.part] = end.receipt.rows
                    self.rows.add(end.receipt)
                elif end.fault is not None:
                    fault = fault or end.fault.error()
                    self.folder.ask_to_stop()
        finally:
            ends.close()  # type: ignore[attr-defined]
        if fault is not None:
            raise fault
        return tuple(dict.fromkeys(note for each in notes.values() for note in each))

    def _orders(self, share: int) -> Iterator[Order]:
        command = self.plan.command
        names = judges_of(command.settings, command.target)
        settings = command.settings.with_(concurrency=share, judge=tuple(names) or ("none",))
        stored = Command(command.golden, command.target, settings, command.folder).as_json()
        for part in self.manifest.parts:
            own = {"folder": self.folder.place, "rounds": settings.trials, "command": stored}
            yield Order(version=__version__, part=part, **own)

    def _look(self, orders: list[Order]) -> None:
        """Pass on that the run is to stop, and say how far the workers are."""
        if self.watch.stop():
            self.folder.ask_to_stop()
        if time.monotonic() - self.noted_at > NOTE_SECONDS:
            self.noted_at = time.monotonic()
            under_way = {order.part.number for order in orders} - self.counts.keys()
            num_asked = sum(self.counts.values()) + self.folder.num_asked(under_way)
            whole = len(self.plan.golden) * self.plan.settings.trials
            self.watch.note(f"asked on {self.engine.name}", num_asked, whole)


def environment_of(command: Command) -> dict[str, str]:
    """The variables of this process that its workers need: those of evaltrack, of models, and of a target's headers."""
    named = {
        value.split()[-1]
        for name, value in command.settings.target_options.items()
        if name.startswith(HEADER) and value.split()
    }
    return {name: value for name, value in os.environ.items() if name.startswith(OWN_VARIABLES) or name in named}
