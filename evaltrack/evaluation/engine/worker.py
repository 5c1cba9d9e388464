"""What a worker's process opens for a run, and keeps open from part to part: target, judges, scores, event loop."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256

from pydantic import TypeAdapter

from evaltrack.evaluation.ask import Evaluator
from evaltrack.evaluation.command import Command
from evaltrack.evaluation.engine.folder import WorkFolder
from evaltrack.evaluation.evaluator import evaluator_of
from evaltrack.evaluation.judge_opening import judges_of, open_cache, open_judges, open_scores
from evaltrack.evaluation.loop import Memory, close_all, evaluate_each, take_all
from evaltrack.judges import Models, open_faithfulness_judge
from evaltrack.llm import share_pauses
from evaltrack.privacy.redaction import Redactor
from evaltrack.records import Closable, Question, Row
from evaltrack.scorers.opening import asks_judge
from evaltrack.targets import open_target


@dataclass
class Worker:
    """What is open in this process."""

    key: str
    evaluator: Evaluator
    concurrency: int
    runner: asyncio.Runner
    opened: ExitStack
    closables: tuple[Closable, ...]

    def ask(
        self,
        numbered: Iterator[tuple[int, Question, int]],
        memory: Memory,
        stop: Callable[[], bool],
        take: Callable[[Row], object],
    ) -> None:
        """Ask each question in its trial, as a run on one machine does."""

        def rows() -> AsyncGenerator[Row]:
            return evaluate_each(numbered, self.evaluator, memory=memory, stop=stop, concurrency=self.concurrency)

        take_all(rows, take, (), self.runner)

    @property
    def notes(self) -> tuple[str, ...]:
        """What is worth knowing of target, judges and scores."""
        return tuple(note for each in self.closables for note in each.notes)

    def close(self) -> None:
        """Close all of it."""
        with suppress(Exception):
            self.runner.run(close_all(self.closables))
        self.runner.close()
        self.opened.close()


_open: list[Worker] = []
"""The worker of this process, once there is one."""


def worker_of(command: Mapping[str, object], environment: Mapping[str, str], folder: WorkFolder) -> Worker:
    """The worker of a run, opened where this process has none of it yet; in `folder` all share their pauses.

    Raises:
        UsageError: target, judge or score cannot be opened here.
    """
    key = sha256(json.dumps([folder.place, command, dict(environment)], sort_keys=True).encode()).hexdigest()
    if _open and _open[0].key == key:
        return _open[0]
    close_worker()
    os.environ.update(environment)
    own: Command = TypeAdapter(Command).validate_python(command)
    with suppress(OSError):  # a worker elsewhere may stand in a copy of that folder
        os.chdir(own.folder)
    with ExitStack() as opened:
        share_pauses(folder.files.board())
        opened.callback(share_pauses, None)
        worker = _opened(key, own, opened)
        worker.opened = opened.pop_all()  # nothing is closed but where something cannot be opened
    _open.append(worker)
    return worker


def _opened(key: str, command: Command, stack: ExitStack) -> Worker:
    """What a command names, opened as on the machine where it was given; judges are named one by one in it."""
    settings = command.settings
    models = Models(settings.concurrency, settings.call_timeout)
    names = judges_of(settings, command.target)
    cache = open_cache(settings, stack) if names or any(map(asks_judge, settings.scores)) else None
    faithfulness = partial(open_faithfulness_judge, names, models, cache)
    scorers = open_scores(settings.scores, {}, settings, faithfulness)
    for scorer in scorers:
        stack.callback(scorer.close)
    target = open_target(command.target, settings.options_of_target, None)
    stack.callback(target.close)
    judges = open_judges(names, settings, cache, models=models)
    for judge in judges:
        stack.callback(judge.close)
    redactor = Redactor.with_environment(settings.redact, target.secrets)
    evaluator = evaluator_of(settings, target, judges, scorers, redactor)
    closables = (target, *judges, *scorers)
    return Worker(key, evaluator, settings.concurrency, asyncio.Runner(), ExitStack(), closables)


def close_worker() -> None:
    """Close what is open in this process."""
    while _open:
        _open.pop().close()
