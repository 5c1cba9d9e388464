"""`evaluation.json`: averages and one result a question. What was not measured is null."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from evaltrack.evaluation.result import RunResult
from evaltrack.records.json_text import finite_json

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
