"""Reruns questions of a comparison with the candidate's target and judges, and counts their passes in earlier runs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from evaltrack.compare.pairing import Side
from evaltrack.compare.reruns import LEAST_TRIALS, Answer
from evaltrack.errors import TrackingError, UsageError
from evaltrack.evaluation.resume import saved_command
from evaltrack.evaluation.settings import Command
from evaltrack.metrics.aggregate import Ledger
from evaltrack.metrics.catalogue import BY_NAME
from evaltrack.records import Row
from evaltrack.records.base import count
from evaltrack.records.run import Run, why_another_system
from evaltrack.system.files import content_digest
from evaltrack.tracking.find_runs import earlier_evaluations, read_rows
from evaltrack.tracking.store import Store

if TYPE_CHECKING:
    from evaltrack.evaluation.plan import Plan

REPLAYS = 100
"""Trial numbers reserved for the replays of `evaltrack.api.judges`."""

FIXED = ("recorded:", "traces:", "trec:")
"""Prefixes of targets and judges that return recorded answers or verdicts."""

DETERMINISTIC = "bm25:"
"""Prefix of targets that always return the same sources."""


def rerunner_of(
    store: Store, was: Side, now: Side, max_reruns: int | None, resources: ExitStack, say: Callable[[str], object]
) -> CandidateRerunner | str:
    """Return a rerunner for questions of the candidate, or the reason that nothing can be rerun.

    The executed command was saved on this machine when the run was started; it never comes from the tracking store.
    Each rerun has a new trial number, so that no cached verdict is used.

    Args:
        store: The store of the runs.
        was: The baseline.
        now: The candidate.
        max_reruns: Largest number of calls; None allows as many as the candidate's run made.
        resources: Closes target and judges, which stay open between reruns.
        say: Receives messages on the reruns.
    """
    run = now.info
    if max_reruns == 0:
        return "reruns are off"
    if run.signature.target.startswith(FIXED):
        return "recorded answers cannot be rerun"
    try:
        command = saved_command(run.run_id)
    except UsageError as error:
        return str(error)
    if command is None:
        return f"run {run.run_id} was not evaluated on this machine, so it is not rerun here"
    recorded = any(name.startswith(FIXED) for name in command.settings.judge)
    if recorded and not run.signature.target.startswith(DETERMINISTIC):
        return "recorded verdicts do not judge the answer of a rerun"
    limit = run.num_questions * command.settings.trials if max_reruns is None else max_reruns
    return CandidateRerunner(store, was, now, command, limit, resources, say)


@dataclass
class CandidateRerunner:
    """Reruns questions of a run, and counts calls, tokens and costs."""

    store: Store
    was: Side
    now: Side
    command: Command
    limit: int
    resources: ExitStack
    say: Callable[[str], object]
    ledger: Ledger = field(default_factory=Ledger)
    _rounds: int = 0
    _rows: tuple[dict[str, Row], dict[str, Row]] = field(default_factory=lambda: ({}, {}))
    _opened: tuple[Plan, asyncio.Runner] | None = None

    @property
    def deterministic(self) -> bool:
        """True if neither the target nor a judge can answer differently."""
        signature = self.now.info.signature
        fixed_judge = signature.judge == "none" or all(name.startswith(FIXED) for name in self.command.settings.judge)
        return signature.target.startswith(DETERMINISTIC) and fixed_judge

    def records(self, ids: Collection[str]) -> Mapping[str, tuple[int, int]]:
        """Return earlier passes and trials of questions."""
        return question_records(self.store, self.was, self.now.info, ids)

    def rerun(self, ids: Sequence[str]) -> Mapping[str, Answer]:
        """Rerun each of the questions once.

        Raises:
            UsageError: target, judge or golden set cannot be opened, or differs from the run's.
        """
        for rows, side in zip(self._rows, (self.was, self.now), strict=True):
            rows.update(side.rows(set(ids) - rows.keys(), ()))
        plan, runner = self._open()
        if not self._rounds:
            most = count(self.limit, "call")
            self.say(f"rerunning {count(len(ids), 'question')}, to tell broken from flaky ones; {most} at most")
        answers: dict[str, Answer] = {}

        def take(row: Row) -> None:
            self.ledger.add(row)
            answers[row.id] = self._answer(row)

        to_rerun = set(ids)
        questions = [q for q in plan.golden if q.id in to_rerun and self._rows[1][q.id].digest == q.digest]
        trial = plan.settings.trials + 1 + REPLAYS + self._rounds  # skips replays, whose verdicts are cached
        self._rounds += 1
        plan.ask(take, questions=questions, trials=[trial], runner=runner)
        return answers

    @property
    def usd(self) -> float | None:
        """The price of all reruns in USD; None if no prices are set."""
        settings = self.command.settings
        pairs = ((settings.prices, self.ledger.usage["target"]), (settings.judge_prices, self.ledger.usage["judge"]))
        costs = [prices.cost(usage) for prices, usage in pairs if prices]
        return sum(costs) if costs else None

    @property
    def tokens(self) -> int:
        """The tokens that target and judges used for the reruns."""
        return self.ledger.total_tokens + self.ledger.usage["judge"].total_tokens

    def _answer(self, again: Row) -> Answer:
        was, now = (rows.get(again.id) for rows in self._rows)
        judged = bool(again.verdicts)
        baseline, candidate, rerun = (_content(row, judged=judged) for row in (was, now, again))
        same = rerun == candidate
        trials_differ = any(row and row.trials and 0 < (row.passes or 0) < row.trials for row in (was, now))
        same_tools = now is not None and again.scores.get("tools_called") == now.scores.get("tools_called")
        return Answer(
            passed=again.passed,
            same=same,
            judge_changed=judged and same and same_tools and again.passed is True,
            same_scores=now is not None and again.passed == now.passed and _same_scores(again, now),
            same_answer=_content(again, judged=True) == _content(now, judged=True),
            as_before=rerun == baseline if baseline != candidate and not trials_differ else None,
        )

    def _open(self) -> tuple[Plan, asyncio.Runner]:
        """Return the plan, opened once, because starting a target may take longer than asking it."""
        from evaltrack.evaluation.plan import planned  # most comparisons rerun nothing

        if self._opened is None:
            command, runner = self.command, self.resources.enter_context(asyncio.Runner())
            # Own scores do not decide whether a question passes, and reruns are made on this machine.
            own = {"scores": (), "require": "", "evaluation_json": ""}
            settings = command.settings.with_(**own, engine="local", engine_address="", engine_workers=0)
            opening = planned(command.golden, settings, command.target, store_uri=self.store.uri)
            plan = self.resources.enter_context(opening)
            _check_same(plan, self.now.info)
            self.resources.callback(plan.close, runner)
            self._opened = plan, runner
        return self._opened


def _content(row: Row | None, *, judged: bool) -> object:
    """Return the values that must agree for two rows to have the same content; the answer only if it is judged."""
    if row is None:
        return None
    return row.scored_names, row.error, row.declined, row.answer if judged else None


def _same_scores(again: Row, now: Row) -> bool:
    """Return True if a rerun has the scores of the run, as far as both have them. Tokens are left out."""
    names = [name for name in again.scores.keys() & now.scores.keys() if BY_NAME[name].tells_result]
    return all(again.scores[name] == now.scores[name] for name in names)


def _check_same(plan: Plan, run: Run) -> None:
    """Refuse another system or judge than the run's. Files imported late are compared by their content on disk."""
    if run.system is None:
        raise UsageError(f"run {run.run_id} cannot be rerun here: it does not say what it evaluated")
    on_disk = {name: content_digest(Path(name)) for name in run.system.files}
    if why := why_another_system(run.system, plan.system.with_files(on_disk)):
        raise UsageError(f"run {run.run_id} cannot be rerun here: {why}")
    was, now = run.signature, plan.signature
    for part in ("target", "judge", "judge_prompt", "k", "pass_threshold", "weights", "rubric", "metrics_version"):
        if getattr(was, part) != getattr(now, part) and (was.judge != "none" or not part.startswith("judge")):
            difference = f"{part} is {getattr(was, part)!r}, not {getattr(now, part)!r}"
            raise UsageError(f"run {run.run_id} cannot be rerun here: {difference}")


EARLIER_RUNS = 20
"""Largest number of earlier runs that are read."""

COLUMNS = ["id", "digest", "passed", "trials", "passes"]


def question_records(store: Store, was: Side, candidate: Run, ids: Collection[str]) -> dict[str, tuple[int, int]]:
    """Return passes and trials of questions in the baseline and in other runs of the same system before the candidate.

    After its last pass since the baseline, a question that fails in run after run may have broken as in the candidate.
    These failures are left out, since they would excuse it.

    If the baseline is a file, only its own trials count. One or two trials of the baseline are left out: the question
    was chosen because it passed there, so they say nothing about its pass rate. Earlier trials of an edited question
    are left out too.

    Raises:
        TrackingError: the store does not answer, or the rows of the baseline are gone.
    """
    baseline, rows = was.info, was.rows(ids, ())
    passed, times = Counter[str](), Counter[str]()
    for row in rows.values():
        if (row.trials or 0) >= LEAST_TRIALS:
            _count(row, passed, times)
    system = baseline.system
    if system and system.is_committed:
        until, passed_since = max(candidate.started_at, baseline.ended_at), set[str]()
        for run in earlier_evaluations(store, baseline, until, EARLIER_RUNS):
            if run.run_id == candidate.run_id or run.system is None or why_another_system(run.system, system):
                continue
            with suppress(TrackingError):  # a run whose rows are gone or damaged is left out
                for row in read_rows(store, run, COLUMNS, set(ids)):
                    if row.passes or row.passed or run.ended_at <= baseline.ended_at:
                        passed_since.add(row.id)
                    if row.id in passed_since and row.id in rows and rows[row.id].digest == row.digest:
                        _count(row, passed, times)
    return {key: (passed[key], times[key]) for key in ids if times[key]}


def _count(row: Row, passed: Counter[str], times: Counter[str]) -> None:
    if row.trials or row.passed is not None:
        times[row.id] += row.trials or 1
        passed[row.id] += (row.passes if row.trials else row.passed) or 0
