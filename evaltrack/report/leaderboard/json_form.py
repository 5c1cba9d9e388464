"""A sweep as JSON for machines, versioned by `schema`. What was not measured is null."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from evaltrack.compare.leaderboard import Standing
from evaltrack.evaluation.sweep_plan import SweepPlan
from evaltrack.evaluation.sweep_result import SweepResult
from evaltrack.report.ci_commands import json_without_commands
from evaltrack.report.schemas.sweeps import LeaderboardForm, PlannedConfiguration, RankedConfiguration, RankedGroup

LEADERBOARD_SCHEMA = "evaltrack.leaderboard/1"
PLAN_SCHEMA = "evaltrack.sweep-plan/1"


def leaderboard_json(result: SweepResult) -> Iterator[str]:
    """One JSON object."""
    board = result.leaderboard
    groups = [
        RankedGroup.of(group, configurations=[_standing(each) for each in group.standings]) for group in board.groups
    ]
    yield _text(LeaderboardForm.of(result, schema=LEADERBOARD_SCHEMA, **vars(board) | {"groups": groups}))


def plan_json(plan: SweepPlan) -> Iterator[str]:
    """What a sweep would do, as one JSON object."""
    configurations = [
        PlannedConfiguration.of(
            each,
            name=each.label,
            target=each.target_name,
            k=each.settings.k,
            settings=dict(each.axes),
            target_calls=plan.target_calls(each),
            judge_calls=plan.judge_calls(each),
        )
        for each in plan.configurations
    ]
    totals = {name: sum(each[name] for each in configurations) for name in ("target_calls", "judge_calls")}
    head = {"schema": PLAN_SCHEMA, "name": plan.name, "golden": plan.golden.name, "questions": len(plan.golden)}
    yield _text(head | totals | {"configurations": configurations})


def _standing(standing: Standing) -> dict[str, Any]:
    return RankedConfiguration.of(
        standing,
        settings=dict(standing.contender.settings),
        metrics={name: asdict(mean) for name, mean in standing.means.items()},
        seconds=standing.contender.seconds,
        seconds_p95=standing.contender.seconds_p95,
        runs=[run.run_id for run in standing.contender.runs],
    )


def _text(value: dict[str, Any]) -> str:
    return json_without_commands(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1)) + "\n"
