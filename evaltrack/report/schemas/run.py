"""Defines the JSON of a run (`run --output json`) and of its rows: pydantic models and schemas."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import AliasPath, BeforeValidator, Field, PlainSerializer

from evaltrack.errors import UsageError
from evaltrack.metrics.criteria import Criterion, parse_criteria
from evaltrack.records import Signature
from evaltrack.records.base import Count
from evaltrack.records.row import Row
from evaltrack.report.schemas.form import Form, Mean, Number, headed, schema_of
from evaltrack.tracking.rows import Column, columns_with


def _read_criterion(criterion: object) -> object:
    """Return the criterion that a text holds, such as ``hit_rate > 0.8``."""
    if isinstance(criterion, str):
        try:
            (criterion,) = parse_criteria(criterion, frozenset({criterion.partition(" ")[0]}))
        except UsageError as error:
            raise ValueError(str(error)) from None
    return criterion


class RunCriterion(Form):
    """A criterion of `--require`: its value, if it is met, and the highest reachable value."""

    criterion: Annotated[Criterion, BeforeValidator(_read_criterion), PlainSerializer(str, return_type=str)]
    value: Number | None
    met: bool | None
    reachable: Number | None = None


class RunAim(Form):
    """The measured value and the aim of a run on reasoning, relative to naive single-shot answers."""

    metric: str
    measured: float
    aim: float = Field(validation_alias=AliasPath("aim", "mean"))
    reached: bool
    published: float = Field(validation_alias=AliasPath("aim", "published"))
    improvement: float = Field(validation_alias="over_published")
    aim_improvement: float = Field(validation_alias=AliasPath("aim", "improvement"))


class SummaryForm(Form):
    """One run. `counts` has the number of questions of each metric, `groups` holds each domain and difficulty."""

    schema_: Literal["evaltrack.run/1"] = Field(alias="schema")
    run_id: str
    experiment_id: str
    status: Literal["FINISHED", "FAILED", "KILLED"]
    signature: Signature
    metrics: dict[str, Number]
    counts: dict[str, Count]
    totals: dict[str, Count]
    groups: dict[str, dict[str, Mean]]
    by_judge: dict[str, Mean]
    cost_usd: dict[str, Number]
    criteria: list[RunCriterion]
    notes: list[str]
    settings: dict[str, str]
    target_seconds: dict[str, Number]


class RunForm(SummaryForm):
    """One run with its aims and its rows."""

    aims: list[RunAim]
    rows: list[Any]


def run_schema() -> dict[str, Any]:
    """Return the schema of `evaltrack run --output json`, which `compare --baseline FILE` also reads."""
    schema = schema_of(RunForm, "run", "A run: evaltrack run --output json")
    schema["$defs"] |= row_schema()
    schema["properties"]["rows"]["items"] = {"$ref": "#/$defs/Row"}
    return schema


def runs_schema() -> dict[str, Any]:
    """Return the schema of the runs of several golden sets."""
    run = run_schema()
    defs = run.pop("$defs") | {"Run": {key: value for key, value in run.items() if key not in ("$schema", "$id")}}
    fields = {"sets": {"type": "array", "items": {"$ref": "#/$defs/Run"}}}
    schema = {"type": "object", "properties": fields, "required": ["sets"], "$defs": defs}
    return headed(schema, "runs", "Runs of several golden sets: evaltrack run --output json")


def row_schema() -> dict[str, Any]:
    """Return the schema of a row of a run or of a trial: the columns of the table, with the definitions that it needs.

    Other fields are user-defined scores.
    """
    row = schema_of(Row, "row", "")
    fields = {column.name: row["properties"].get(column.name) or _score(column) for column in columns_with()}
    own = {"type": ["number", "null"]}
    item = {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": own}
    return {**row["$defs"], "Row": item}


def _score(column: Column) -> dict[str, Any]:
    return {"type": ["number", "null"], "minimum": column.low, "maximum": column.high}
