"""The forms of a run as JSON: `evaltrack run --output json`, of several sets, and `evaluation.json`."""

from __future__ import annotations

from math import isfinite
from typing import Any, Literal

from pydantic import Field

from evaltrack.records import Signature
from evaltrack.report.schemas.form import CriterionState, Form, Mean, headed, schema_of
from evaltrack.tracking.rows import COLUMNS, OBJECTS, Column


class RunCriterion(CriterionState):
    """A criterion of `--require`."""

    criterion: str


class RunAim(Form):
    """What a run on reasoning measured beside an aim over naive single-shot answers."""

    metric: str
    measured: float
    aim: float
    reached: bool
    published: float
    improvement: float
    aim_improvement: float


class SummaryForm(Form):
    """One run. `counts` says over how many questions each metric is, `groups` holds each domain and difficulty."""

    schema_: Literal["evaltrack.run/1"] = Field(alias="schema")
    run_id: str
    experiment_id: str
    status: str
    signature: Signature
    metrics: dict[str, float]
    counts: dict[str, int]
    totals: dict[str, float]
    groups: dict[str, dict[str, Mean]]
    by_judge: dict[str, Mean]
    cost_usd: dict[str, float]
    criteria: list[RunCriterion]
    notes: list[str]
    settings: dict[str, str]
    target_seconds: dict[str, float]


class RunForm(SummaryForm):
    """The same with its aims and its rows."""

    aims: list[RunAim]
    rows: list[Any]


class EvaluationSummary(Form):
    """Means over the questions that were measured; null where none was."""

    avg_hit_rate: float | None
    avg_mrr: float | None
    avg_judge_score: float | None
    avg_combined_score: float | None
    best_combined_score: float | None
    avg_num_tokens: float | None
    total_tokens: int


class EvaluationMetadata(Form):
    """What was evaluated."""

    ground_truth_file: str
    search_mode: Literal["evaluation"]
    judge_model: str | None
    target: str
    mlflow_run_id: str


class EvaluationResult(Form):
    """One question; what was not measured is null, and `error` is there where the question failed."""

    question: str
    hit_rate: float | None
    mrr: float | None
    judge_score: float | None
    num_tokens: int | None
    combined_score: float | None


class EvaluationForm(Form):
    """`evaluation.json`."""

    timestamp: str
    num_questions: int
    summary: EvaluationSummary
    metadata: EvaluationMetadata
    results: list[EvaluationResult]


def run_schema() -> dict[str, Any]:
    """`evaltrack run --output json`, also what `compare --baseline FILE` reads."""
    schema = schema_of(RunForm, "run", "A run: evaltrack run --output json")
    schema["$defs"]["Row"] = row_schema()
    schema["properties"]["rows"]["items"] = {"$ref": "#/$defs/Row"}
    return schema


def runs_schema() -> dict[str, Any]:
    """The same of several golden sets."""
    run = run_schema()
    defs = run.pop("$defs") | {"Run": {key: value for key, value in run.items() if key not in ("$schema", "$id")}}
    fields = {"sets": {"type": "array", "items": {"$ref": "#/$defs/Run"}}}
    schema = {"type": "object", "properties": fields, "required": ["sets"], "$defs": defs}
    return headed(schema, "runs", "Runs of several golden sets: evaltrack run --output json")


def evaluation_schema() -> dict[str, Any]:
    """`evaluation.json`."""
    schema = schema_of(EvaluationForm, "evaluation", "evaluation.json: evaltrack run --set evaluation_json=FILE")
    schema["$defs"]["EvaluationResult"]["properties"]["error"] = {"type": "string"}
    return schema


def row_schema() -> dict[str, Any]:
    """One question of a run, or one of its trials: the columns of the table, with `OBJECTS` as objects.

    Other fields are scores of one's own.
    """
    fields = {column.name: _field(column) for column in COLUMNS}
    fields |= {name: {"type": "object", "additionalProperties": {"type": "string"}} for name in OBJECTS}
    own = {"type": ["number", "null"]}
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": own}


def _field(column: Column) -> dict[str, Any]:
    if column.type == "objects":
        fields = {each.name: _field(each) for each in column.fields}
        item = {"type": "object", "properties": fields, "required": list(fields)}
        return {"type": ["array", "null"], "items": item}
    if column.type == "texts":
        return {"type": ["array", "null"], "items": {"type": "string"}}
    if column.choices:
        return {"enum": [*column.choices, None]}
    names = {"text": "string", "number": "number", "integer": "integer", "flag": "boolean"}
    kind: dict[str, Any] = {"type": names[column.type] if column.required else [names[column.type], "null"]}
    if column.type in ("number", "integer"):
        bounds = zip(("minimum", "maximum"), column.bounds, strict=True)
        kind |= {name: bound for name, bound in bounds if isfinite(bound)}
    return kind
