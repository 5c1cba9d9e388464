"""Renders a run as text, Markdown and JSON, with its verdicts as JSON Lines, and reads its `summary.json`."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

from pydantic import ValidationError
from rich.console import Console

from evaltrack.errors import TrackingError
from evaltrack.evaluation.result import RunResult
from evaltrack.judges import TEXT_LIMIT
from evaltrack.metrics.aggregate import LEVELS, worst_domains
from evaltrack.metrics.catalogue import MAIN_SCORES
from evaltrack.metrics.rubric import tier_words
from evaltrack.records.json_text import finite_json
from evaltrack.records.row import Row, outcome_of, text_digest
from evaltrack.records.verdict import ANSWER_GRADES
from evaltrack.report.escaping import json_without_commands, one_line, within
from evaltrack.report.schemas.run import (
    RunAim,
    SummaryForm,
)
from evaltrack.report.templates import markdown, print_template
from evaltrack.tracking.tags import ROWS
from evaltrack.tracking.writer import TABLE, TABLE_ROWS

SHOWN = 10
"""Questions of a kind that are listed, and domains."""

SCREEN, WIDTH = 25, 100
"""Lines of a terminal that are filled by shortening lists of questions and groups, and its columns."""

NOTE_LIMIT = 7000
"""Characters. MLflow stores 8,000 of a tag; the rest is left for a comparison."""


def print_run(result: RunResult, console: Console) -> None:
    """Print the metrics with their counts, the groups, the first misses and errors, and the run's address in MLflow.

    The lists of questions and groups are shortened to fit a screen.
    """
    print_template(console, "run.txt", (SHOWN, 8, 6, 5, 4, 3, 2, 1), SCREEN, WIDTH, result=result)


def run_note(result: RunResult, taken: int = 0) -> str:
    """Return a short report for MLflow's description of the run.

    It holds the evaluation and its pass rate, links, the metrics with their counts, the worst domains, and the first
    misses and errors.

    Args:
        result: The run.
        taken: Characters of the description that are already used.
    """
    domains = worst_domains(result.groups)
    fields = {
        "result": result,
        "shown": SHOWN,
        "here": f"#/experiments/{result.experiment_id}",
        "golden": quote(result.signature.golden, safe=""),
        "table": TABLE if result.totals["num_questions"] <= TABLE_ROWS else ROWS,
        "kind": "table" if result.totals["num_questions"] <= TABLE_ROWS else "file",
        "target": one_line(result.signature.target.replace("`", ""), 300),
        "domains": domains,
        "worst": [*(name for name, _ in domains[:SHOWN]), *(name for name in result.groups if name in LEVELS)],
    }
    text = markdown().get_template("run.md").render(fields)
    return within(text.rstrip("\n").split("\n"), NOTE_LIMIT - taken)


def with_own_note(own: str, note: str) -> str:
    """Return a description that begins with the user's own note."""
    return f"{own.rstrip()}\n\n{note}" if own.strip() else note


# The judges' reasoning

FIELDS = ("judge", "reasoning", *ANSWER_GRADES, "declined")
"""The fields of a verdict's line. The cost is left out: reading a verdict back costs nothing."""

SHOWN_TURNS = 10
"""Last turns before a question that the page shows."""

PAGE = 500
"""Questions on the page. The JSON Lines hold all."""


def verdict_lines(rows: Iterable[Row], judge: str | None = None) -> Iterator[str]:
    """Yield one line for each verdict of all judges or of one judge, in the format that a `recorded:` judge reads.

    A digest identifies the judged answer, unless the table holds only its beginning.
    """
    for row in rows:
        for verdict in row.verdicts:
            if judge is not None and verdict.judge != judge:
                continue
            fields = {name: value for name in FIELDS if (value := getattr(verdict, name)) is not None}
            fields |= verdict.observed.model_dump() if verdict.observed else {}
            judged = {"answer_digest": text_digest(row.answer)} if row.answer and len(row.answer) < TEXT_LIMIT else {}
            yield json.dumps({"id": row.id, **fields, **judged}, ensure_ascii=False, allow_nan=False) + "\n"


def reasoning_page(rows: Iterable[Row]) -> Iterator[str]:
    """Yield the page: judge errors, then questions that did not pass, then the rest by score."""
    judged = [row for row in rows if row.verdicts or row.judge_failed]
    judged.sort(key=_order)
    fields = {"rows": judged[:PAGE], "total": len(judged), "grades": ANSWER_GRADES}
    yield from markdown().get_template("reasoning.md").generate(fields, tier_words=tier_words, turns=SHOWN_TURNS)


def _order(row: Row) -> tuple[int, float]:
    if row.error:
        return 0, 0.0
    score = row.scores.get("reasoning_score", row.scores.get("overall_score"))
    return (1 if row.passed is False else 2), score if score is not None else 1.0


# JSON

RUN_SCHEMA = "evaltrack.run/1"


def run_summary(result: RunResult) -> dict[str, Any]:
    """Return everything about a run except its rows."""
    seconds = {name.rpartition(".")[2]: value for name, value in result.seconds.items()}
    return SummaryForm.of(result, schema=RUN_SCHEMA, target_seconds=seconds).data()


def run_json(result: RunResult) -> Iterator[str]:
    """Yield one JSON object in pieces. Rows are streamed, so that a large run needs no more memory than a small one."""
    aims = [RunAim.of(each).data() for each in result.aims]
    head = json.dumps({**run_summary(result), "aims": aims}, ensure_ascii=False, allow_nan=False)
    yield json_without_commands(head[:-1]) + ', "rows": ['
    for place, row in enumerate(result.read_table()):
        yield f"{',' * (place > 0)}\n{json_without_commands(finite_json(row))}"
    yield "]}\n"


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

SUMMARY = {
    "avg_hit_rate": "hit_rate",
    "avg_mrr": "mrr",
    "avg_judge_score": "judge_score",
    "avg_combined_score": "combined_score",
    "best_combined_score": "combined_score_best",
    "avg_num_tokens": "num_tokens",
}
"""The fields of the summary in `evaluation.json`, and their metrics."""

RESULT = {
    "question": "question",
    "hit_rate": "hit",
    "mrr": "reciprocal_rank",
    "judge_score": "overall_score",
    "num_tokens": "num_tokens",
    "combined_score": "combined_score",
}
"""The fields of a result in `evaluation.json`, and their columns."""

RESULT_COLUMNS = ("id", "error", *RESULT.values())


def evaluation_json(result: RunResult, golden_path: str, rows: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield the object in pieces. Its results are streamed from `rows`, which are columns.

    What was not measured is null. A result has an `error` only if its question failed.
    """
    means = {name: result.metrics.get(metric) for name, metric in SUMMARY.items()}
    head = {
        "timestamp": datetime.now(UTC).isoformat(),
        "num_questions": result.totals["num_questions"],
        "summary": {**means, "total_tokens": result.totals["total_tokens"]},
        "metadata": {
            "ground_truth_file": golden_path,
            "search_mode": "evaluation",
            "judge_model": _judge_model(result.signature.judge),
            "target": result.signature.target,
            "mlflow_run_id": result.run_id,
        },
        "results": [],
    }
    yield json.dumps(head, ensure_ascii=False, allow_nan=False, indent=2).removesuffix("]\n}")
    for number, row in enumerate(rows):
        fields = {name: row[column] for name, column in RESULT.items()}
        if fields["num_tokens"] is not None:
            fields["num_tokens"] = int(fields["num_tokens"])
        if row["error"]:
            fields["error"] = row["error"]
        yield f"{',' * (number > 0)}\n    {finite_json(fields)}"
    yield "\n  ]\n}\n"


def _judge_model(judge: str) -> str | None:
    """Return the judge's model, `gpt-4o`; of a panel all models."""
    return None if judge == "none" else "+".join(name.removeprefix("openai:") for name in judge.split("+"))


def read_summary(path: Path, run_id: str) -> SummaryForm:
    """Read the summary from a downloaded artifact. Every field must be there with its type, and every number finite.

    Raises:
        TrackingError: it is damaged, or of another version.
    """
    try:
        return SummaryForm.model_validate_json(path.read_bytes(), strict=True, extra="forbid")
    except ValidationError as error:
        place = one_line(".".join(map(str, error.errors()[0]["loc"]))) or "JSON"
        problem = f"summary.json of run {run_id} is damaged or of another version: {place}; evaluate again"
        raise TrackingError(problem) from None
