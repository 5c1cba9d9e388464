"""Ask the questions that flipped again, so that a real regression is told from a flaky one."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence

from evaltrack.commands import Named, command_to_repeat
from evaltrack.compare.comparison import Repeat
from evaltrack.compare.pairing import Side
from evaltrack.errors import UsageError
from evaltrack.plan import Plan, planned
from evaltrack.records import Row
from evaltrack.tracking.reader import EvaluationRun

MAX_REPEATS = 100
REPLAYS = 100
"""Trials that `evaltrack.replaying` may have numbered before."""


def asking_again(
    run: EvaluationRun, side: Side, times: int, named: Named
) -> Callable[[Sequence[str]], Mapping[str, Repeat]]:
    """What a comparison calls with the ids of the questions that flipped: each is asked `times` more times.

    The target and the judges are those the run was started with, as this machine kept them or the user `named` them:
    never what the tracking store says. Each time is a trial of its own, so that no verdict of before is used again.

    Raises:
        UsageError: `times` is out of range, or the run cannot be repeated here.
    """
    if not 1 <= times <= MAX_REPEATS:
        raise UsageError(f"repeat_flips is {times}; write a number from 1 to {MAX_REPEATS}")
    command = command_to_repeat(run.run_id, run.signature, named)

    def again(ids: Sequence[str]) -> Mapping[str, Repeat]:
        if not ids:
            return {}
        digests = {key: row["digest"] for key, row in side.rows(set(ids)).items()}
        with planned(command.golden, command.settings, command.target) as plan:
            _check_same(plan, run)
            return _repeat(plan, digests, times)

    return again


def _check_same(plan: Plan, run: EvaluationRun) -> None:
    """Whoever answers and judges now must be who did."""
    was, now = run.signature, plan.signature
    for part in ("target", "judge", "judge_prompt", "k", "pass_threshold", "weights", "rubric", "metrics_version"):
        if getattr(was, part) != getattr(now, part) and (was.judge != "none" or not part.startswith("judge")):
            said = f"{part} was {getattr(was, part)!r} and is {getattr(now, part)!r}"
            raise UsageError(f"run {run.run_id} cannot be repeated here: {said}")


def _repeat(plan: Plan, digests: Mapping[str, str], times: int) -> dict[str, Repeat]:
    questions = [one for one in plan.golden if digests.get(one.id) == one.digest]
    outcomes: defaultdict[str, list[bool | None]] = defaultdict(list)

    def take(row: Row) -> None:
        outcomes[row.question.id].append(row.passed)

    first = plan.settings.trials + 1 + REPLAYS  # not those of a replay, whose verdicts are paid for already
    plan.ask(take, questions=questions, trials=range(first, first + times))
    return {
        key: Repeat(times, passed=sum(o is True for o in outcomes[key]), failed=sum(o is False for o in outcomes[key]))
        for key in digests
    }
