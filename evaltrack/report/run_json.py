"""Writes a run as versioned JSON, and reads its `summary.json`. Values that were not measured are null."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StringConstraints, ValidationError

from evaltrack.errors import TrackingError, UsageError
from evaltrack.evaluation.result import METRICS, RunResult
from evaltrack.metrics.catalogue import HEADLINES
from evaltrack.metrics.criteria import Criterion, parse_criteria
from evaltrack.records import Signature
from evaltrack.records.base import Count, Record
from evaltrack.records.json_text import finite_json
from evaltrack.records.stored_row import outcome_of
from evaltrack.records.verdict import NAME_PATTERN
from evaltrack.report.escaping import json_without_commands
from evaltrack.report.schemas.form import CriterionState
from evaltrack.report.schemas.run import RunAim, SummaryForm
from evaltrack.tracking.rows import OBJECTS

RUN_SCHEMA = "evaltrack.run/1"

AT_ONCE = 50
"""Rows that are serialized together."""


def run_summary(result: RunResult) -> dict[str, Any]:
    """Return everything about a run except its rows."""
    groups = {group: {name: _mean(each) for name, each in means.items()} for group, means in result.groups.items()}
    return SummaryForm.of(
        result,
        schema=RUN_SCHEMA,
        groups=groups,
        by_judge={judge: _mean(each) for judge, each in result.by_judge.items()},
        criteria=[{"criterion": str(each.criterion), **CriterionState.of(each)} for each in result.criteria],
        target_seconds={name.rpartition(".")[2]: value for name, value in result.seconds.items()},
    )


def _mean(pair: tuple[float, int]) -> dict[str, float]:
    return dict(zip(("mean", "n"), pair, strict=True))


def run_json(result: RunResult) -> Iterator[str]:
    """Yield one JSON object in pieces. Rows are streamed, so that a large run needs no more memory than a small one."""
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
    """Return the row with the reasons and the reasoning of scores as objects."""
    return columns | {name: _object_of(columns[name]) for name in OBJECTS}


@lru_cache(maxsize=100)
def _object_of(text: str | None) -> dict[str, str]:
    """Parse the text. Results are cached: most rows hold the same few reasons."""
    objects: dict[str, str] = json.loads(text) if text else {}
    return objects


MAIN_SCORES = tuple(score.name for score in HEADLINES if score.tells_result)

OUTCOME_COLUMNS = ("id", "digest", "error", "passed", *MAIN_SCORES)
"""The columns that determine the outcome of a row."""


def outcomes_json(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return the outcome and the main scores of each question as columns. A browser reads those of many runs."""
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
"""Characters of a digest that identify a question."""

RESULT_COLUMNS = (
    *("id", "question", "error"),
    *("hit", "reciprocal_rank", "overall_score", "num_tokens", "combined_score"),
)
"""The columns of a row in `evaluation.json`."""

SUMMARY = {
    "avg_hit_rate": "hit_rate",
    "avg_mrr": "mrr",
    "avg_judge_score": "judge_score",
    "avg_combined_score": "combined_score",
    "best_combined_score": "combined_score_best",
    "avg_num_tokens": "num_tokens",
}


def evaluation_json(result: RunResult, golden_path: str, rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the object in pieces. Its results are streamed from `rows`, which are columns."""
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
    """Return the judge's model, `gpt-4o`; of a panel all models."""
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


# summary.json is checked before use: anyone with write access to the artifacts can change it

LIMIT = 20_000_000
"""Bytes of a summary. A summary of a thousand domains has two million."""

Name = Annotated[str, StringConstraints(min_length=1, max_length=1000)]
Number = Annotated[float, Field(ge=-1e15, le=1e15)]
Metrics = Annotated[Mapping[Name, Number], Field(max_length=1000)]


class StoredMean(Record):
    """A mean, and its number of questions."""

    mean: Number
    n: Count


Means = Annotated[Mapping[Name, StoredMean], Field(max_length=1000)]


def _criterion(text: object) -> Criterion:
    if not isinstance(text, str):
        raise ValueError("is no text")  # noqa: TRY004 - the kind of error that becomes a finding
    try:
        name = text.partition(" ")[0]  # a user-defined score may have any valid name
        own = {name} if re.fullmatch(NAME_PATTERN, name) else set()
        (criterion,) = parse_criteria(text, METRICS | {"combined_score_best"} | own)
    except UsageError as error:
        raise ValueError(str(error)) from None
    return criterion


class StoredCriterion(Record):
    """A criterion of the run, its value, and if it was met."""

    criterion: Annotated[Criterion, BeforeValidator(_criterion)]
    value: Number | None
    met: bool | None
    reachable: Number | None = None


class StoredSummary(Record):
    """A run without its rows."""

    run_schema: Literal["evaltrack.run/1"] = Field(alias="schema")
    run_id: str
    experiment_id: str
    status: Literal["FINISHED", "FAILED", "KILLED"]
    signature: Signature
    metrics: Metrics
    counts: Annotated[Mapping[Name, Count], Field(max_length=1000)]
    totals: Annotated[Mapping[Name, Count], Field(max_length=1000)]
    groups: Annotated[Mapping[Name, Means], Field(max_length=100_000)]
    by_judge: Means
    cost_usd: Metrics
    criteria: Annotated[tuple[StoredCriterion, ...], Field(max_length=1000)]
    notes: Annotated[tuple[str, ...], Field(max_length=1000)]
    settings: Annotated[Mapping[Name, str], Field(max_length=1000)] = Field(default_factory=dict)
    target_seconds: Metrics


def read_summary(path: Path, run_id: str) -> StoredSummary:
    """Read the summary from a downloaded artifact. Every field must be there with its type, and every number finite.

    Raises:
        TrackingError: it is damaged, of another version, or larger than `LIMIT`.
    """
    damaged = f"summary.json of run {run_id} is damaged or of another version"
    if path.stat().st_size > LIMIT:
        raise TrackingError(f"{damaged}: it is larger than {LIMIT:,} bytes; evaluate again")
    try:
        return StoredSummary.model_validate_json(path.read_bytes(), strict=True)
    except ValidationError as error:
        places = "; ".join(".".join(map(str, each["loc"][:3])) or "JSON" for each in error.errors()[:3])
        raise TrackingError(f"{damaged}: {places[:200]}; evaluate again") from None
