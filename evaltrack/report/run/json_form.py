"""A run as JSON for machines, versioned by `schema`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from evaltrack.evaluation.result import RunResult
from evaltrack.report.ci_commands import json_without_commands
from evaltrack.rows.stored_row import StoredRow

RUN_SCHEMA = "evaltrack.run/1"


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
        "criteria": [
            {"criterion": str(c.criterion), "value": c.value, "met": c.met, "reachable": c.reachable}
            for c in result.criteria
        ],
        "notes": list(result.notes),
        "settings": dict(result.settings),
        "target_seconds": {name.rpartition(".")[2]: value for name, value in result.seconds.items()},
    }


def run_json(result: RunResult) -> Iterator[str]:
    """One JSON object in pieces, its rows streamed, so that a large run needs no more memory than a small one."""
    head = _text({**run_summary(result), "aims": list(_aims(result))})
    yield head[:-1] + ', "rows": ['
    for number, row in enumerate(result.read_rows()):
        yield ("\n" if number == 0 else ",\n") + _text(machine_row(row))
    yield "]}\n"


def _aims(result: RunResult) -> Iterator[dict[str, Any]]:
    """What a run on reasoning reached of what it should over naive single-shot answers; of others nothing."""
    for each in result.aims:
        yield {
            "metric": each.metric,
            "measured": each.measured,
            "aim": each.aim.mean,
            "reached": each.reached,
            "published": each.aim.published,
            "improvement": each.improvement,
            "aim_improvement": each.aim.improvement,
        }


_as_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
"""Made once: `json.dumps` makes an encoder at each call."""


def _text(value: dict[str, Any]) -> str:
    return json_without_commands(_as_json(value))


def machine_row(row: StoredRow) -> dict[str, Any]:
    """The row as columns, with reasons and what judges of scores said as objects."""
    objects = {"unmeasured": row.unmeasured, "score_reasoning": row.score_reasoning}
    return row.columns() | {name: json.loads(text) if text else {} for name, text in objects.items()}
