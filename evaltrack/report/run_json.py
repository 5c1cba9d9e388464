"""Converts a run to JSON (`--output json`, `summary.json`, `evaluation.json`, ...), and reads `summary.json`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from evaltrack.errors import TrackingError
from evaltrack.evaluation.result import RunResult
from evaltrack.metrics.catalogue import HEADLINES
from evaltrack.records.json_text import finite_json
from evaltrack.records.stored_row import outcome_of
from evaltrack.report.escaping import json_without_commands
from evaltrack.report.schemas.run import (
    EvaluationForm,
    EvaluationMetadata,
    EvaluationResult,
    EvaluationSummary,
    RunAim,
    SummaryForm,
)

RUN_SCHEMA = "evaltrack.run/1"

AT_ONCE = 50
"""Rows that are serialized together."""


def run_summary(result: RunResult) -> dict[str, Any]:
    """Return everything about a run except its rows."""
    seconds = {name.rpartition(".")[2]: value for name, value in result.seconds.items()}
    return SummaryForm.of(result, schema=RUN_SCHEMA, target_seconds=seconds).data()


def run_json(result: RunResult) -> Iterator[str]:
    """Yield one JSON object in pieces. Rows are streamed, so that a large run needs no more memory than a small one."""
    aims = [RunAim.of(each).data() for each in result.aims]
    head = json.dumps({**run_summary(result), "aims": aims}, ensure_ascii=False, allow_nan=False)
    yield json_without_commands(head[:-1]) + ', "rows": ['
    rows, break_before = iter(result.read_table()), "\n"
    while texts := [finite_json(row) for row in islice(rows, AT_ONCE)]:
        yield break_before + json_without_commands(",\n".join(texts))
        break_before = ",\n"
    yield "]}\n"


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


def evaluation_json(result: RunResult, golden_path: str, rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the object in pieces. Its results are streamed from `rows`, which are columns."""
    totals = result.totals
    form = EvaluationForm(
        timestamp=datetime.now(UTC).isoformat(),
        num_questions=totals["num_questions"],
        summary=EvaluationSummary.model_validate({**result.metrics, "total_tokens": totals["total_tokens"]}),
        metadata=EvaluationMetadata(
            ground_truth_file=golden_path,
            search_mode="evaluation",
            judge_model=_judge_model(result.signature.judge),
            target=result.signature.target,
            mlflow_run_id=result.run_id,
        ),
        results=[],
    )
    yield json.dumps(form.data(), ensure_ascii=False, indent=2).removesuffix("]\n}")
    for number, row in enumerate(rows):
        error = {"error": row["error"]} if row["error"] else {}
        yield f"{',' * (number > 0)}\n    {finite_json(EvaluationResult.model_validate(row).data() | error)}"
    yield "\n  ]\n}\n"


def _judge_model(judge: str) -> str | None:
    """Return the judge's model, `gpt-4o`; of a panel all models."""
    return None if judge == "none" else "+".join(name.removeprefix("openai:") for name in judge.split("+"))


LIMIT = 20_000_000
"""Bytes of a summary. A summary of a thousand domains has two million."""


def read_summary(path: Path, run_id: str) -> SummaryForm:
    """Read the summary from a downloaded artifact, which anyone with write access to the artifacts can change.

    Every field must be there with its type, and every number finite.

    Raises:
        TrackingError: it is damaged, of another version, or larger than `LIMIT`.
    """
    damaged = f"summary.json of run {run_id} is damaged or of another version"
    if path.stat().st_size > LIMIT:
        raise TrackingError(f"{damaged}: it is larger than {LIMIT:,} bytes; evaluate again")
    try:
        return SummaryForm.model_validate_json(path.read_bytes(), strict=True, extra="forbid")
    except ValidationError as error:
        places = "; ".join(".".join(map(str, each["loc"][:3])) or "JSON" for each in error.errors()[:3])
        raise TrackingError(f"{damaged}: {places[:200]}; evaluate again") from None
