"""A run as JSON for machines, versioned by `schema`, and `evaluation.json`. What was not measured is null."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from typing import Any

from evaltrack.evaluation.result import RunResult
from evaltrack.metrics.catalogue import HEADLINES
from evaltrack.records.json_text import finite_json
from evaltrack.records.stored_row import outcome_of
from evaltrack.report.ci_commands import json_without_commands
from evaltrack.report.schemas.form import CriterionState
from evaltrack.report.schemas.run import RunAim
from evaltrack.tracking.rows import OBJECTS

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


MAIN_SCORES = tuple(score.name for score in HEADLINES if score.tells_result)

OUTCOME_COLUMNS = ("id", "digest", "error", "passed", *MAIN_SCORES)
"""The columns of a row that its outcome reads."""


def outcomes_json(rows: Iterable[Mapping[str, Any]]) -> str:
    """The outcome and the main scores of each question as columns: a browser reads those of many runs."""
    held = list(rows)
    scores = {
        name: [None if (score := row.get(name)) is None else round(score, 4) for row in held] for name in MAIN_SCORES
    }
    columns = {
        "id": [row["id"] for row in held],
        "digest": [row["digest"][:DIGEST] for row in held],
        "outcome": [outcome_of(row["error"], passed=row["passed"]) for row in held],
        "scores": {name: values for name, values in scores.items() if any(value is not None for value in values)},
    }
    return finite_json(columns)


DIGEST = 12
"""Characters of a digest by which a question is known again."""

RESULT_COLUMNS = (
    *("id", "question", "error"),
    *("hit", "reciprocal_rank", "overall_score", "num_tokens", "combined_score"),
)
"""The columns of a row that its result reads."""

SUMMARY = {
    "avg_hit_rate": "hit_rate",
    "avg_mrr": "mrr",
    "avg_judge_score": "judge_score",
    "avg_combined_score": "combined_score",
    "best_combined_score": "combined_score_best",
    "avg_num_tokens": "num_tokens",
}


def evaluation_json(result: RunResult, golden_path: str, rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """The object in pieces, its results streamed from `rows` as columns."""
    summary: dict[str, Any] = {name: result.metrics.get(metric) for name, metric in SUMMARY.items()}
    head = {
        "timestamp": datetime.now(UTC).isoformat(),
        "num_questions": result.totals["num_questions"],
        "summary": {**summary, "total_tokens": result.totals["total_tokens"]},
        "metadata": {
            "ground_truth_file": golden_path,
            "search_mode": "evaluation",
            "judge_model": _judge_model(result.signature.judge),
            "target": result.signature.target,
            "mlflow_run_id": result.run_id,
        },
    }
    yield json.dumps(head, ensure_ascii=False, indent=2)[:-2] + ',\n  "results": ['
    for number, row in enumerate(rows):
        yield ("\n    " if number == 0 else ",\n    ") + finite_json(_result(row))
    yield "\n  ]\n}\n"


def _judge_model(judge: str) -> str | None:
    """The judge's model, `gpt-4o`; of a panel each one."""
    return None if judge == "none" else "+".join(name.removeprefix("openai:") for name in judge.split("+"))


def _result(row: Mapping[str, Any]) -> dict[str, Any]:
    tokens = row["num_tokens"]
    return {
        "question": row["question"],
        "hit_rate": row["hit"],
        "mrr": row["reciprocal_rank"],
        "judge_score": row["overall_score"],
        "num_tokens": None if tokens is None else int(tokens),
        "combined_score": row["combined_score"],
        **({"error": row["error"]} if row["error"] else {}),
    }
