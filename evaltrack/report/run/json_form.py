"""A run as JSON for machines, versioned by `schema`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Any

from evaltrack.evaluation.result import RunResult
from evaltrack.records.json_text import finite_json
from evaltrack.report.ci_commands import json_without_commands
from evaltrack.report.schemas.form import CriterionState
from evaltrack.report.schemas.run import RunAim
from evaltrack.rows.columns import OBJECTS

RUN_SCHEMA = "evaltrack.run/1"

AT_ONCE = 50
"""Rows that are printed together."""


def run_summary(result: RunResult) -> dict[str, Any]:
    """Everything about a run but its rows."""
    return {
        "schema": RUN_SCHEMA,
        "run_id": result.run_id,
        "experiment_id": result.experiment_id,
        "status": result.status,
        "signature": result.signature.model_dump(),
        "metrics": dict(result.metrics),
        "counts": dict(result.counts),
        "totals": dict(result.totals),
        "groups": {
            group: {name: {"mean": mean, "n": n} for name, (mean, n) in metrics.items()}
            for group, metrics in result.groups.items()
        },
        "by_judge": {judge: {"mean": mean, "n": n} for judge, (mean, n) in result.by_judge.items()},
        "cost_usd": dict(result.cost_usd),
        "criteria": [{"criterion": str(each.criterion), **CriterionState.of(each)} for each in result.criteria],
        "notes": list(result.notes),
        "settings": dict(result.settings),
        "target_seconds": {name.rpartition(".")[2]: value for name, value in result.seconds.items()},
    }


def run_json(result: RunResult) -> Iterator[str]:
    """One JSON object in pieces, its rows streamed, so that a large run needs no more memory than a small one."""
    aims = [
        RunAim.of(each, aim=each.aim.mean, published=each.aim.published, aim_improvement=each.aim.improvement)
        for each in result.aims
    ]
    head = json.dumps({**run_summary(result), "aims": aims}, ensure_ascii=False, allow_nan=False)
    yield json_without_commands(head[:-1]) + ', "rows": ['
    rows, break_before = iter(result.read_table()), "\n"
    while texts := [finite_json(machine_row(row)) for row in islice(rows, AT_ONCE)]:
        yield break_before + json_without_commands(",\n".join(texts))
        break_before = ",\n"
    yield "]}\n"


def machine_row(columns: dict[str, Any]) -> dict[str, Any]:
    """The row with reasons and what judges of scores said as objects."""
    return columns | {name: _object_of(columns[name]) for name in OBJECTS}


@lru_cache(maxsize=100)
def _object_of(text: str | None) -> dict[str, str]:
    """The same few reasons stand in most rows."""
    objects: dict[str, str] = json.loads(text) if text else {}
    return objects
