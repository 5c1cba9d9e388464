"""Schemas of the files that people write: golden lines, recorded responses and recorded verdicts."""

from __future__ import annotations

from typing import Any

from evaltrack.judges.recorded import NOT_IN_FILES
from evaltrack.records import Observed, Question, Response, Verdict
from evaltrack.records.verdict import ANSWER_GRADES
from evaltrack.report.schemas.form import headed, plain
from evaltrack.targets.recorded import ANSWERS
from evaltrack.targets.responses import CONTEXTS

ID = {"type": ["string", "integer"], "minLength": 1}
"""Ids are compared as strings: 5 and "5" are one."""

CHUNK_FIELDS = ("expected_chunks", "expected_sources")


def golden_schema() -> dict[str, Any]:
    """One line of a golden set; `domain` is the file's name where it is left out."""
    schema = _with_ids(Question.model_json_schema())
    fields = {name: field for name, field in schema["properties"].items() if name != "grades"}
    grade = schema["properties"]["grades"]["additionalProperties"]
    for name in CHUNK_FIELDS:
        fields[name] = {
            "anyOf": [
                {"type": "array", "items": ID},
                {"type": "object", "additionalProperties": grade},
                {"type": "null"},
            ]
        }
    passage = schema["$defs"]["Passage"]
    passage["oneOf"] = [{"required": ["quote"]}, {"required": ["any_of"]}]
    schema = schema | {"properties": fields, "required": ["id", "question"]}
    schema["description"] = "One line of a golden set (.jsonl), or one element of the array in a .json file."
    return headed(plain(schema), "golden", "A question of a golden set")


def response_schema() -> dict[str, Any]:
    """One line of `recorded:FILE`, a response; sources and tools may be written in short."""
    schema = _with_ids(Response.model_json_schema())
    source, usage, tool = (schema["$defs"][name] for name in ("Source", "Usage", "ToolCall"))
    source["properties"] = {"id": {"anyOf": [ID, {"type": "null"}]}} | source["properties"]
    source["anyOf"] = [{"required": [name]} for name in ("chunk_id", "id", "title", "text")]
    for each in (usage, tool):  # also as OpenAI's API gives them
        each["additionalProperties"], each["required"] = True, []
    fields = {name: _or_null(field) for name, field in schema["properties"].items()}
    fields["sources"] = {"type": ["array", "null"], "items": {"anyOf": [ID, {"$ref": "#/$defs/Source"}]}}
    del fields["seconds"]  # of traces alone
    fields["tool_calls"] = {
        "type": ["array", "null"],
        "items": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/ToolCall"}]},
    }
    fields |= {name: {"type": ["array", "null"], "description": "`sources` that are texts."} for name in CONTEXTS}
    fields["error"] = {"description": "Why there was no response; then the question counts as an error."}
    schema = schema | {"properties": {"id": ID} | fields, "required": ["id"]}
    schema["anyOf"] = [_with_value(name) for name in (*ANSWERS, *CONTEXTS, "error")]
    schema["description"] = "One line of recorded responses, `evaltrack run -t recorded:FILE`."
    return headed(plain(schema), "response", "A recorded response")


def verdict_schema() -> dict[str, Any]:
    """One line of `--judge recorded:FILE`; what was observed of reasoning stands beside the other fields."""
    verdict, observed = _with_ids(Verdict.model_json_schema()), _with_ids(Observed.model_json_schema())
    own = {name: field for name, field in verdict["properties"].items() if name not in (*NOT_IN_FILES, "observed")}
    own["judge"] = {"type": "string", "minLength": 1}
    reasoning = list(observed["required"])
    schema = {
        "type": "object",
        "description": "One line of recorded verdicts, `evaltrack run --judge recorded:FILE`.",
        "properties": {"id": ID} | own | observed["properties"],
        "required": ["id"],
        "anyOf": [{"required": [name]} for name in (*ANSWER_GRADES, "declined", *reasoning[:1])],
        "dependentRequired": {name: [each for each in reasoning if each != name] for name in reasoning},
        "additionalProperties": False,
        "$defs": observed["$defs"],
    }
    return headed(plain(schema), "verdict", "A recorded verdict")


def _with_ids(schema: Any) -> Any:
    """The schema with ids, texts of at least one character, that may be written as numbers."""
    if isinstance(schema, dict):
        if schema.get("type") == "string" and schema.get("minLength") == 1 and "pattern" not in schema:
            return {**schema, **ID}
        return {name: _with_ids(each) for name, each in schema.items()}
    return [_with_ids(each) for each in schema] if isinstance(schema, list) else schema


def _with_value(name: str) -> dict[str, Any]:
    """Lines in which a field is not null."""
    return {"required": [name], "properties": {name: {"not": {"type": "null"}}}}


def _or_null(field: dict[str, Any]) -> dict[str, Any]:
    """A field that may be null, which is as if it were left out."""
    given = [each.get("type") for each in field.get("anyOf", [field])]
    return field if "null" in given else {"anyOf": [field, {"type": "null"}]}
