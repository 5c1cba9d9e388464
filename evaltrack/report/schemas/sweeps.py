"""The forms of a sweep: its file, what `--dry-run --output json` prints, and the leaderboard."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from evaltrack.compare.leaderboard import CostUnit, ReferenceKind
from evaltrack.evaluation.config import EvaluationConfig
from evaltrack.evaluation.sweep_file import ELSEWHERE, OF_ALL, SweepFile
from evaltrack.report.schemas.form import Form, headed, plain

TEXTS: dict[str, Any] = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]}


class PlannedConfiguration(Form):
    """One evaluation to come, and how many calls it makes at most."""

    name: str
    target: str
    k: int
    settings: dict[str, str]
    target_calls: int
    judge_calls: int


class PlanForm(Form):
    """What a sweep would do."""

    schema_: Literal["evaltrack.sweep-plan/1"] = Field(alias="schema")
    name: str
    golden: str
    questions: int
    target_calls: int
    judge_calls: int
    configurations: list[PlannedConfiguration]


class RankedMean(Form):
    """A mean over n questions; `delta` is the paired difference to the reference, with its 95 % interval."""

    value: float
    n: int
    delta: float | None
    interval: tuple[float, float] | None
    method: str | None


class RankedConfiguration(Form):
    """One line; `cost` and `seconds` are for one question, `p_value` is corrected for all `tests`."""

    name: str
    settings: dict[str, str]
    rank: int | None
    why_unranked: str
    metrics: dict[str, RankedMean]
    p_value: float | None
    spread: tuple[float, float] | None
    cost: float | None
    seconds: float | None
    seconds_p95: float | None
    num_errors: int
    runs: list[str]


class RankedGroup(Form):
    """Configurations that measured the ranking metric in the same way, the best first."""

    label: str
    reference: str | None
    num_questions: int
    configurations: list[RankedConfiguration]


class LeaderboardForm(Form):
    """The leaderboard of a sweep."""

    schema_: Literal["evaltrack.leaderboard/1"] = Field(alias="schema")
    run_id: str
    experiment_id: str
    name: str
    golden: str
    status: str
    reused: int
    notes: list[str]
    rank_by: str | None
    reference: ReferenceKind
    metrics: list[str]
    tests: int
    cost_unit: CostUnit | None
    groups: list[RankedGroup]


FORMS = {
    "sweep-plan": (PlanForm, "What a sweep would do: evaltrack sweep --dry-run --output json"),
    "leaderboard": (LeaderboardForm, "The leaderboard of a sweep: evaltrack sweep --output json"),
}


def sweep_schema() -> dict[str, Any]:
    """The file of a sweep; of each setting a value or a list of values to try."""
    schema = plain(SweepFile.model_json_schema())
    target, fields = schema["$defs"]["SweepTarget"], schema["properties"]
    settings = plain(EvaluationConfig.model_json_schema())["properties"]
    shared = {name: _values(name, each) for name, each in settings.items() if name not in ELSEWHERE}
    own = {name: each for name, each in shared.items() if name not in OF_ALL}
    target["properties"]["settings"] |= {"properties": own, "additionalProperties": False}
    fields["settings"] |= {"properties": shared, "additionalProperties": False}
    either = {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/SweepTarget"}]}
    for name, item in {"targets": either, "k": fields["k"]["items"]}.items():
        listed = {"type": "array", "minItems": 1, "items": item}
        fields[name] = {"anyOf": [item, listed], "description": fields[name]["description"]}
    schema["description"] = "The file of a sweep (.yaml, .json, .toml)."
    return headed(schema, "sweep", "A sweep: evaltrack sweep FILE")


def _values(name: str, setting: dict[str, Any]) -> dict[str, Any]:
    """A setting of one value, or of a list of values to try."""
    described = {"description": setting["description"]} if "description" in setting else {}
    if name == "target_options":
        scalar = {"type": ["string", "number", "boolean"]}
        option = {"anyOf": [scalar, {"type": "array", "minItems": 1, "items": scalar}]}
        return {"type": "object", "additionalProperties": option} | described
    if setting.get("type") == "array":
        value = TEXTS
    else:
        value = {key: each for key, each in setting.items() if key not in ("default", "description", "traits")}
    if name in OF_ALL:
        return {**value, **described}
    return {"anyOf": [value, {"type": "array", "minItems": 1, "items": value}]} | described
