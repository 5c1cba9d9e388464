"""Asks, judges and scores questions on the workers of a Ray cluster; each row returns to the driver immediately.

The driver is the process that was started. It holds the plan, the journal and the MLflow run as without Ray: its loop
awaits rows from workers instead of making them. If a worker or the driver dies, only the questions in flight are lost.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import signal
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from evaltrack import __version__
from evaltrack.errors import EvaltrackError, InconclusiveError, UsageError
from evaltrack.evaluation.ask import Evaluator
from evaltrack.evaluation.loop import close_all
from evaltrack.evaluation.plan import open_with
from evaltrack.evaluation.settings import Command
from evaltrack.privacy.addresses import shown_text
from evaltrack.records import Closable, Question, Row
from evaltrack.targets import open_target

MOST_DEATHS = 10
"""Number of times that the worker of a question may die before the run ends."""
CONNECT_SECONDS = 10.0
END_SECONDS = 10.0
"""Seconds that a worker may take to close its resources."""
OWN_VARIABLES = ("OPENAI_", "EVALTRACK_")
"""Prefixes of the environment variables that are passed to workers."""
HEADER = "header."
"""Prefix of target settings whose values name environment variables."""
_PLACE = re.compile(r"(?:ray://)?([^:/]+):([0-9]{1,5})")


class RowWorker:
    """A Ray process that makes rows. Ray restarts it if it dies, and sends it the questions in flight again."""

    def __init__(self, command: Command, environment: Mapping[str, str]) -> None:
        self._command, self._environment = command, environment
        self._resources, self._opened = ExitStack(), list[Closable]()
        self._evaluator: Evaluator | None = None

    async def open(self, version: str) -> None:
        """Open target, judges and scores.

        Raises:
            UsageError: one of them cannot be opened here, or the driver has another `version` of evaltrack.
        """
        if version != __version__:
            here = f"evaltrack {__version__} is installed on the worker {socket.gethostname()}"
            raise UsageError(f"{here}, and {version} where the run was started; install the same version")
        self._evaluator = self._evaluator or self._open_evaluator()

    async def row(self, position: int, question: Question, trial: int) -> Row:
        """Ask, judge and score one question; a restarted process opens everything first."""
        self._evaluator = self._evaluator or self._open_evaluator()
        return await self._evaluator.row(position, question, trial)

    async def end(self) -> list[str]:
        """Close everything, and return the notes."""
        import ray

        notes = [note for each in self._opened for note in each.notes]
        if ray.get_runtime_context().was_current_actor_reconstructed:
            notes.append("a Ray worker died and was restarted; its questions in flight were rerun")
        await close_all(self._opened)
        self._resources.close()
        return notes

    def _open_evaluator(self) -> Evaluator:
        os.environ.update(self._environment)
        with suppress(OSError):  # another machine may not have the folder
            os.chdir(self._command.folder)
        settings, name = self._command.settings, self._command.target
        opened = open_with(open_target(name, settings.options_of_target), settings, self._resources)
        self._opened += opened.closables
        return opened.evaluator(settings)


class RayWorkers(Closable):
    """The workers of one run, which make the rows of its loop. Each has an equal share of the concurrency."""

    def __init__(self, command: Command) -> None:
        import ray

        settings, num_cpus = command.settings, max(1, int(ray.cluster_resources().get("CPU", 1)))
        self._num_workers = settings.engine_workers or min(num_cpus, settings.concurrency)
        self._share = settings.concurrency // self._num_workers
        self._command = command.model_copy(update={"settings": settings.with_(concurrency=self._share)})
        self._environment = environment_of(command)
        self._starting, self._started, self._workers = list[asyncio.Task[None]](), list[Any](), list[Any]()
        self._free: asyncio.Queue[Any] = asyncio.Queue()
        """A worker is queued once for each question that it can start; an error ends the run."""
        self._notes: list[str] = []

    @property
    def notes(self) -> list[str]:
        """The notes of the workers, once they are closed."""
        return list(dict.fromkeys(self._notes))

    async def row(self, position: int, question: Question, trial: int) -> Row:
        """Return the row of a question from the first free worker.

        Raises:
            EvaltrackError: the error of the worker, or workers died too often.
        """
        from ray.exceptions import RayError

        if not self._workers:
            self._start()
        worker = await self._free.get()
        if isinstance(worker, EvaltrackError):
            raise worker
        try:
            row: Row = await worker.row.remote(position, question, trial)
        except RayError as error:
            raise _own_error(error) from None
        finally:
            self._free.put_nowait(worker)
        return row

    def _start(self) -> None:
        """Start all workers; each is free once it has opened everything."""
        import ray

        in_ray = ray.remote(RowWorker).options(
            num_cpus=1, max_concurrency=self._share + 1, max_restarts=-1, max_task_retries=MOST_DEATHS
        )
        # Ray logs no arguments.
        self._workers = [in_ray.remote(self._command, self._environment) for _ in range(self._num_workers)]
        self._starting = [asyncio.create_task(self._open(worker)) for worker in self._workers]

    async def _open(self, worker: Any) -> None:
        from ray.exceptions import RayError

        try:
            await worker.open.remote(__version__)
        except RayError as error:
            self._free.put_nowait(_own_error(error))
            return
        self._started.append(worker)
        for _ in range(self._share):
            self._free.put_nowait(worker)

    async def aclose(self) -> None:
        """Close the workers' resources, and end the workers."""
        import ray

        for task in self._starting:
            task.cancel()
        await asyncio.gather(*self._starting, *map(self._end, self._started), return_exceptions=True)
        for worker in self._workers:
            ray.kill(worker)
        self._workers = []

    async def _end(self, worker: Any) -> None:
        async with asyncio.timeout(END_SECONDS):
            self._notes += await worker.end.remote()


@contextmanager
def connected_workers(command: Command) -> Iterator[RayWorkers]:
    """Yield the workers of the Ray cluster at the given address, else of Ray's own settings, else on this machine.

    If this process is already connected to Ray, that connection is used and remains open.

    Raises:
        UsageError: Ray cannot be reached.
    """
    import ray

    if ray.is_initialized():
        yield RayWorkers(command)
        return
    in_main_thread = threading.current_thread() is threading.main_thread()
    before = signal.getsignal(signal.SIGTERM) if in_main_thread else None
    try:
        _connect(command.settings.engine_address)
        if before is not None:  # Ray sets a handler that ends the process
            signal.signal(signal.SIGTERM, before)
        yield RayWorkers(command)
    finally:
        ray.shutdown()


def _connect(address: str) -> None:
    import ray

    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no usage reports from a Ray that is started here
    try:
        if place := _PLACE.fullmatch(address or os.environ.get("RAY_ADDRESS", "")):
            # Ray itself retries for minutes if nothing listens.
            socket.create_connection((place[1], int(place[2])), CONNECT_SECONDS).close()
        ray.init(address=address or None, log_to_driver=False, logging_level=logging.ERROR)
    except Exception as error:  # noqa: BLE001 - of many kinds, also Python's own
        where = f"`engine_address={address}`" if address else "`engine=ray`"
        what = shown_text(f"{type(error).__name__}: {error}".splitlines()[0])
        cure = "start it with: ray start --head; one that asks for a token needs RAY_AUTH_MODE=token and RAY_AUTH_TOKEN"
        raise UsageError(f"{where}: Ray cannot be reached ({what}); {cure}") from None


def _own_error(error: Exception) -> EvaltrackError:
    """Return the evaltrack error that a worker raised; an `InconclusiveError` for any other."""
    from ray.exceptions import RayTaskError

    last = shown_text(str(error).strip().splitlines()[-1])
    if not isinstance(error, RayTaskError):
        cure = "see why in Ray's own logs, give its workers more memory, or set a lower `concurrency=`"
        return InconclusiveError(f"a Ray worker died repeatedly ({last}); {cure}")
    if isinstance(error.cause, EvaltrackError):
        return error.cause
    return InconclusiveError(f"a Ray worker failed: {last}; install the same evaltrack and the same Python there")


def environment_of(command: Command) -> dict[str, str]:
    """Return the environment variables that workers need: those of evaltrack, of models, and of a target's headers."""
    named = {
        value.split()[-1]
        for name, value in command.settings.target_options.items()
        if name.startswith(HEADER) and value.split()
    }
    return {name: value for name, value in os.environ.items() if name.startswith(OWN_VARIABLES) or name in named}
