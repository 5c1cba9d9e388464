"""Ask changed questions again, and look up how often they failed before, to tell real losses from scatter."""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from functools import partial

from evaltrack.api.local_commands import Named, command_to_repeat
from evaltrack.compare.config import MAX_REPEATS, RepeatFlips
from evaltrack.compare.engine import AskAgain
from evaltrack.compare.pairing import Side
from evaltrack.compare.scatter import Again, Record
from evaltrack.errors import InconclusiveError, TrackingError, UsageError
from evaltrack.evaluation.config import Command
from evaltrack.evaluation.plan import Plan, planned
from evaltrack.records import Row
from evaltrack.records.amount import count
from evaltrack.rows.stored_row import StoredRow, stored_row
from evaltrack.tracking.reader import EvaluationRun, earlier_evaluations, newer_evaluation
from evaltrack.tracking.run_files import read_rows
from evaltrack.tracking.store import Store

LOUD = 20
"""Answers that are asked for at a time from which it is said; and at first."""

REPLAYS = 100
"""Trials that `evaltrack.api.replay_judge` may have numbered before."""

FIXED = ("recorded:", "traces:")
"""What begins so holds answers or verdicts given before, and cannot be asked again."""

DETERMINISTIC = "bm25:"
"""Targets that begin so give the same sources always."""


Say = Callable[[str], object]
FindRecords = Callable[[Sequence[str]], Mapping[str, Record]]


def asking_again(
    store: Store,
    run: EvaluationRun,
    side: Side,
    times: RepeatFlips,
    named: Named,
    records: FindRecords,
    resources: ExitStack,
    say: Say = lambda _: None,
) -> AskAgain:
    """Who asks the questions of a comparison again: the candidate's own target and judges.

    These are those the run was started with, as this machine kept them or the user `named` them: never what the
    tracking store says. Each time is a trial of its own, so that no verdict of before is used again.

    Args:
        store: Where the run is.
        run: The candidate.
        side: Its rows.
        times: How often each question is asked at most; 0 asks none, ``"auto"`` as often as it takes, where that is
            possible.
        named: What the user names of the command.
        records: Gives the records of questions.
        resources: Closes target and judges, which stay open from one time to the next.
        say: Receives what is being asked, in words.

    Raises:
        UsageError: `times` is out of range, or is a number and the run cannot be repeated here.
    """
    if times == 0:
        return AskAgain(why_not="nothing was asked again")
    if times != "auto" and not 1 <= times <= MAX_REPEATS:
        raise UsageError(f"repeat_flips is {times}; write auto, or a number from 0 to {MAX_REPEATS}")
    try:
        command = command_to_repeat(run.run_id, run.signature, named)
    except UsageError as error:
        if times != "auto":
            raise
        return AskAgain(why_not=str(error))
    if run.signature.target.startswith(FIXED) and _is_fixed_judge(run, command):
        return AskAgain(why_not="recorded answers cannot be asked again")
    asker = CandidateAsker(run, side, command, records, resources, say, store_uri=store.uri)
    if times == "auto":
        return AskAgain(replace(asker, find_newer=partial(newer_evaluation, store, run)))
    return AskAgain(asker, times)


def _is_fixed_judge(run: EvaluationRun, command: Command) -> bool:
    """Whether there is no judge, or only recorded verdicts."""
    return run.signature.judge == "none" or all(name.startswith(FIXED) for name in command.settings.judge)


@dataclass
class CandidateAsker:
    """Asks questions of a run again, each time as a trial of its own.

    Nothing is asked where `find_newer` gives a newer run of the same target: its code may differ by now.
    """

    run: EvaluationRun
    side: Side
    command: Command
    find_records: FindRecords
    resources: ExitStack
    say: Say = lambda _: None
    find_newer: Callable[[], EvaluationRun | None] = lambda: None
    store_uri: str | None = None
    _times: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    _shown: dict[str, StoredRow] = field(default_factory=dict)
    _opened: tuple[Plan, asyncio.Runner] | None = None

    @property
    def deterministic(self) -> bool:
        """Whether neither the target nor a judge can answer otherwise."""
        return self.run.signature.target.startswith(DETERMINISTIC) and _is_fixed_judge(self.run, self.command)

    def records(self, ids: Sequence[str]) -> Mapping[str, Record]:
        """How often questions failed in runs and trials of the baseline's kind."""
        return self.find_records(ids)

    def ask(self, ids: Sequence[str], times: int) -> Mapping[str, Sequence[Again]]:
        """Ask each of these questions so many times more.

        Raises:
            UsageError: target, judge or golden set cannot be opened, or is another than the run's.
            InconclusiveError: the target has a newer run.
        """
        if self._opened is None and (newer := self.find_newer()):
            why = f"run {newer.run_id[:8]} of the same target is newer, and its code may differ"
            raise InconclusiveError(f"{why}; --repeat-flips N asks it")
        if unread := set(ids) - self._shown.keys():
            self._shown |= self.side.rows(unread)
        if len(ids) * times >= LOUD or not self._times:
            what = count(len(ids), "question")
            often = "once" if times == 1 else f"{times} times"
            self.say(f"asking {what} again, {often}, to tell what broke from what scatters")
        outcomes: defaultdict[str, list[Again]] = defaultdict(list)

        def take(row: Row) -> None:
            again = stored_row(row, self.run.signature.k)
            outcomes[again.id].append(Again(row.passed, _same(again, self._shown[again.id])))

        by_before: defaultdict[int, set[str]] = defaultdict(set)
        for key in ids:
            by_before[self._times[key]].add(key)
            self._times[key] += times
        for before, those in by_before.items():
            plan, runner = self._open()
            questions = (q for q in plan.golden if q.id in those and self._shown[q.id].digest == q.digest)
            first = plan.settings.trials + 1 + REPLAYS + before  # a replay's verdicts are paid for already
            plan.ask(take, questions=list(questions), trials=range(first, first + times), runner=runner)
        return outcomes

    def _open(self) -> tuple[Plan, asyncio.Runner]:
        """What is asked and where, opened once: starting a target may take longer than asking it."""
        if self._opened is None:
            command, runner = self.command, self.resources.enter_context(asyncio.Runner())
            opening = planned(command.golden, command.settings, command.target, repeats=True, store_uri=self.store_uri)
            plan = self.resources.enter_context(opening)
            _check_same(plan, self.run)
            self.resources.callback(plan.close, runner)
            self._opened = plan, runner
        return self._opened


def _same(row: StoredRow, other: StoredRow) -> bool:
    """Whether a question was answered and judged as in the other row."""
    same_score = all(row.scores.get(name) == other.scores.get(name) for name in ("overall_score", "reasoning_score"))
    content, was = ((each.answer, each.retrieval_digest, each.passed, each.error) for each in (row, other))
    return same_score and content == was


def _check_same(plan: Plan, run: EvaluationRun) -> None:
    """Target and judge must be the same as in the run."""
    was, now = run.signature, plan.signature
    for part in ("target", "judge", "judge_prompt", "k", "pass_threshold", "weights", "rubric", "metrics_version"):
        if getattr(was, part) != getattr(now, part) and (was.judge != "none" or not part.startswith("judge")):
            difference = f"{part} was {getattr(was, part)!r} and is {getattr(now, part)!r}"
            raise UsageError(f"run {run.run_id} cannot be repeated here: {difference}")


EARLIER_RUNS = 20
"""Earlier runs that are read."""

COLUMNS = ["id", "digest", "passed", "trials", "passes"]


def question_records(store: Store, baseline: EvaluationRun, ids: Sequence[str]) -> dict[str, Record]:
    """The records of questions: runs that ended before the baseline, of the same target, judge and settings.

    The baseline's own outcome is left out unless it stands for several trials: a question is looked up here because it
    passed there, which says nothing of how often it does. An edited question has no record.

    Raises:
        TrackingError: the store does not answer, or the rows of the baseline are not there.
    """
    digests: dict[str, str] = {}
    failed, times = Counter[str](), Counter[str]()
    for row in read_rows(store, baseline, COLUMNS, set(ids)):
        digests[row.id] = row.digest
        if row.trials:
            _count(row, failed, times)
    for run in earlier_evaluations(store, baseline, EARLIER_RUNS):
        with suppress(TrackingError):  # a run whose rows are gone or damaged is no record
            for row in read_rows(store, run, COLUMNS, set(ids)):
                if digests.get(row.id) == row.digest:
                    _count(row, failed, times)
    return {key: Record(failed[key], times[key]) for key in ids if times[key]}


def _count(row: StoredRow, failed: Counter[str], times: Counter[str]) -> None:
    if row.trials:
        times[row.id] += row.trials
        failed[row.id] += row.trials - (row.passes or 0)
    elif row.passed is not None:
        times[row.id] += 1
        failed[row.id] += not row.passed


def no_records(_ids: Sequence[str]) -> Mapping[str, Record]:
    """A baseline that is a file has none."""
    return {}
