"""Defines schemas of input files (golden set, sweep, recorded responses), and of the JSON of sweeps and judges."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import AliasPath, Field

from evaltrack.evaluation.ranking import ContenderMean, CostUnit, ReferenceKind
from evaltrack.evaluation.settings import EvaluationConfig
from evaltrack.evaluation.sweep import ELSEWHERE, OF_ALL, SweepFile
from evaltrack.golden.lint import Finding
from evaltrack.judges.recorded import NOT_IN_FILES
from evaltrack.judges.reliability import JudgesAgreement, Replay
from evaltrack.records import Question, Response, Verdict
from evaltrack.records.base import KEY_SCHEMA
from evaltrack.records.verdict import ANSWER_GRADES, Observed
from evaltrack.report.schemas.form import Form, headed
from evaltrack.targets.responses import CONTENT, CONTEXTS
from evaltrack.tracking.baselines import Baseline


class PlannedConfiguration(Form):
    """A planned evaluation, and the most calls it makes."""

    name: str
    target: str = Field(validation_alias="target_name")
    k: int = Field(validation_alias=AliasPath("settings", "k"))
    settings: dict[str, str] = Field(validation_alias="axes")
    target_calls: int
    judge_calls: int


class PlanForm(Form):
    """The plan of a sweep."""

    schema_: Literal["evaltrack.sweep-plan/1"] = Field("evaltrack.sweep-plan/1", alias="schema")
    name: str
    golden: str
    questions: int
    target_calls: int
    judge_calls: int
    configurations: list[PlannedConfiguration]


class RankedConfiguration(Form):
    """One line; `cost` and `seconds` are for one question, `p_value` is corrected for all `tests`."""

    name: str
    settings: dict[str, str] = Field(validation_alias=AliasPath("contender", "settings"))
    rank: int | None
    why_unranked: str
    metrics: dict[str, ContenderMean] = Field(validation_alias="means")
    p_value: float | None
    cost: float | None
    seconds: float | None = Field(validation_alias=AliasPath("contender", "seconds"))
    seconds_p95: float | None = Field(validation_alias=AliasPath("contender", "seconds_p95"))
    num_errors: int
    run_id: str = Field(validation_alias=AliasPath("contender", "run", "run_id"))


class RankedGroup(Form):
    """Configurations that measured the ranking metric in the same way, the best first."""

    label: str
    reference: str | None
    num_questions: int
    configurations: list[RankedConfiguration] = Field(validation_alias="standings")


class LeaderboardForm(Form):
    """The leaderboard of a sweep."""

    schema_: Literal["evaltrack.leaderboard/1"] = Field("evaltrack.leaderboard/1", alias="schema")
    run_id: str
    experiment_id: str
    name: str
    golden: str
    status: str
    reused: int
    rank_by: str | None
    reference: ReferenceKind
    metrics: list[str]
    tests: int
    cost_unit: CostUnit | None
    groups: list[RankedGroup]


def sweep_schema() -> dict[str, Any]:
    """Return the schema of a sweep file. Each setting is a value or a list of values to try."""
    schema = SweepFile.model_json_schema()
    target, fields = schema["$defs"]["SweepTarget"], schema["properties"]
    settings = {
        name: {"description": field.description}
        for name, field in EvaluationConfig.model_fields.items()
        if name not in ELSEWHERE
    }
    own = {name: each for name, each in settings.items() if name not in OF_ALL}
    target["properties"]["settings"] |= {"properties": own, "additionalProperties": False}
    fields["settings"] |= {"properties": settings, "additionalProperties": False}
    either = {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/SweepTarget"}]}
    for name, item in {"targets": either, "k": fields["k"]["items"]}.items():
        listed = {"type": "array", "minItems": 1, "items": item}
        fields[name] = {"anyOf": [item, listed], "description": fields[name]["description"]}
    schema["description"] = "The file of a sweep (.yaml, .json, .toml)."
    return headed(schema, "sweep", "A sweep: evaltrack sweep FILE")


FORMS: dict[str, tuple[Any, str]] = {
    "sweep-plan": (PlanForm, "What a sweep would do: evaltrack sweep --dry-run --output json"),
    "leaderboard": (LeaderboardForm, "The leaderboard of a sweep: evaltrack sweep --output json"),
    "replay": (Replay, "A replayed judge: evaltrack judge replay --output json"),
    "agreement": (JudgesAgreement, "Two judges: evaltrack judge agree --output json"),
    "findings": (list[Finding], "Findings: evaltrack golden lint --output json"),
    "baselines": (list[Baseline], "Baselines: evaltrack baseline show --output json"),
}


# Golden lines, recorded responses and recorded verdicts

CHUNK_FIELDS = ("expected_chunks", "expected_sources")


def golden_schema() -> dict[str, Any]:
    """Return the schema of a golden set's line. `domain` defaults to the file's name."""
    schema = Question.model_json_schema()
    fields = {name: field for name, field in schema["properties"].items() if name != "grades"}
    grade = schema["properties"]["grades"]["additionalProperties"]
    for name in CHUNK_FIELDS:
        fields[name] = {
            "anyOf": [
                {"type": "array", "items": KEY_SCHEMA},
                {"type": "object", "additionalProperties": grade},
                {"type": "null"},
            ]
        }
    passage = schema["$defs"]["Passage"]
    passage["oneOf"] = [{"required": ["quote"]}, {"required": ["any_of"]}]
    schema = schema | {"properties": fields, "required": ["id", "question"]}
    schema["description"] = "One line of a golden set (.jsonl), or one element of the array in a .json file."
    return headed(schema, "golden", "A question of a golden set")


def response_schema() -> dict[str, Any]:
    """Return the schema of a line of `recorded:FILE`, a response. Sources and tools have short forms."""
    schema = Response.model_json_schema()
    source, usage, tool = (schema["$defs"][name] for name in ("Source", "Usage", "ToolCall"))
    source["properties"] = {"id": {"anyOf": [KEY_SCHEMA, {"type": "null"}]}} | source["properties"]
    source["anyOf"] = [{"required": [name]} for name in ("chunk_id", "id", "title", "text")]
    for each in (usage, tool):  # OpenAI's API also has this format
        each["additionalProperties"], each["required"] = True, []
    fields = {name: _or_null(field) for name, field in schema["properties"].items()}
    fields["sources"] = {"type": ["array", "null"], "items": {"anyOf": [KEY_SCHEMA, {"$ref": "#/$defs/Source"}]}}
    del fields["seconds"]  # only traces have it
    fields["tool_calls"] = {
        "type": ["array", "null"],
        "items": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/ToolCall"}]},
    }
    fields |= {name: {"type": ["array", "null"], "description": "`sources` that are texts."} for name in CONTEXTS}
    fields["error"] = {"description": "Why there was no response; then the question counts as an error."}
    schema = schema | {"properties": {"id": KEY_SCHEMA} | fields, "required": ["id"]}
    schema["anyOf"] = [_with_value(name) for name in (*CONTENT, *CONTEXTS, "error")]
    schema["description"] = "One line of recorded responses, `evaltrack run -t recorded:FILE`."
    return headed(schema, "response", "A recorded response")


def verdict_schema() -> dict[str, Any]:
    """Return the schema of a line of `--judge recorded:FILE`. Observations of reasoning are fields too."""
    verdict, observed = Verdict.model_json_schema(), Observed.model_json_schema()
    own = {name: field for name, field in verdict["properties"].items() if name not in (*NOT_IN_FILES, "observed")}
    own["judge"] = {"type": "string", "minLength": 1}
    reasoning = list(observed["required"])
    schema = {
        "type": "object",
        "description": "One line of recorded verdicts, `evaltrack run --judge recorded:FILE`.",
        "properties": {"id": KEY_SCHEMA} | own | observed["properties"],
        "required": ["id"],
        "anyOf": [{"required": [name]} for name in (*ANSWER_GRADES, "declined", *reasoning[:1])],
        "dependentRequired": {name: [each for each in reasoning if each != name] for name in reasoning},
        "additionalProperties": False,
        "$defs": observed["$defs"],
    }
    return headed(schema, "verdict", "A recorded verdict")


def _with_value(name: str) -> dict[str, Any]:
    """Return the schema of lines in which a field is not null."""
    return {"required": [name], "properties": {name: {"not": {"type": "null"}}}}


def _or_null(field: dict[str, Any]) -> dict[str, Any]:
    """Return a field that may be null, which equals a missing field."""
    given = [each.get("type") for each in field.get("anyOf", [field])]
    return field if "null" in given else {"anyOf": [field, {"type": "null"}]}
