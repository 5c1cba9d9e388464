"""A sweep as JSON for machines, versioned by `schema`. What was not measured is null."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from evaltrack.compare.leaderboard import ContenderMean, Group, Leaderboard, Standing
from evaltrack.evaluation.sweep_plan import SweepPlan
from evaltrack.evaluation.sweep_result import SweepResult
from evaltrack.report.ci_commands import json_without_commands

LEADERBOARD_SCHEMA = "evaltrack.leaderboard/1"
PLAN_SCHEMA = "evaltrack.sweep-plan/1"


def leaderboard_json(result: SweepResult) -> Iterator[str]:
    """One JSON object."""
    head = {
        "schema": LEADERBOARD_SCHEMA,
        "run_id": result.run_id,
        "experiment_id": result.experiment_id,
        "name": result.name,
        "golden": result.golden,
        "status": result.status,
        "reused": result.reused,
        "notes": list(result.notes),
    }
    yield _text(head | board_fields(result.leaderboard))


def plan_json(plan: SweepPlan) -> Iterator[str]:
    """What a sweep would do, as one JSON object."""
    configurations = [
        {
            "name": each.label,
            "target": each.target_name,
            "k": each.settings.k,
            "settings": dict(each.axes),
            "target_calls": plan.target_calls(each),
            "judge_calls": plan.judge_calls(each),
        }
        for each in plan.configurations
    ]
    totals = {name: sum(each[name] for each in configurations) for name in ("target_calls", "judge_calls")}  # type: ignore[misc]
    head = {"schema": PLAN_SCHEMA, "name": plan.name, "golden": plan.golden.name, "questions": len(plan.golden)}
    yield _text(head | totals | {"configurations": configurations})


def board_fields(board: Leaderboard) -> dict[str, Any]:
    """The leaderboard itself."""
    return {
        "rank_by": board.rank_by,
        "reference": board.reference,
        "metrics": list(board.metrics),
        "tests": board.tests,
        "cost_unit": board.cost_unit,
        "groups": [_group(each) for each in board.groups],
    }


def _group(group: Group) -> dict[str, Any]:
    return {
        "label": group.label,
        "reference": group.reference,
        "num_questions": group.num_questions,
        "configurations": [_standing(each) for each in group.standings],
    }


def _standing(standing: Standing) -> dict[str, Any]:
    return {
        "name": standing.name,
        "settings": dict(standing.contender.settings),
        "rank": standing.rank,
        "why_unranked": standing.why_unranked,
        "metrics": {name: _mean(mean) for name, mean in standing.means.items()},
        "p_value": standing.p_value,
        "spread": list(standing.spread) if standing.spread else None,
        "cost": standing.cost,
        "seconds": standing.contender.seconds,
        "seconds_p95": standing.contender.seconds_p95,
        "num_errors": standing.num_errors,
        "runs": [run.run_id for run in standing.contender.runs],
    }


def _mean(mean: ContenderMean) -> dict[str, Any]:
    return {
        "value": mean.value,
        "n": mean.n,
        "delta": mean.delta,
        "interval": list(mean.interval) if mean.interval else None,
        "method": mean.method,
    }


def _text(value: dict[str, Any]) -> str:
    return json_without_commands(json.dumps(value, ensure_ascii=False, allow_nan=False, indent=1)) + "\n"
