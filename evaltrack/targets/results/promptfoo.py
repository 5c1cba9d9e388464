"""promptfoo: what `promptfoo eval -o` writes as JSON or JSON Lines, one result for each test, prompt and provider."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from evaltrack.golden.exchange.records import shown
from evaltrack.golden.exchange.values import TEXT_KEYS, is_empty
from evaltrack.targets.results.result import Result, first_sources, object_in, text_or_none, usage_of

FAILED = 2
"""`failureReason` of a test whose provider failed; 1 is an assertion that did not hold, whose answer counts."""

ANSWER_KEYS = ("answer", "response", "output", "completion", "text", "content")
"""Keys of an output that is an object, under which its answer stands."""


def result_of(row: Mapping[str, Any], question: str = "") -> Result:
    """One result; an output that is an object holds the answer under a usual key (`answer`, `output`, …).

    What was retrieved is looked for in that object, in the metadata of the response, and in the variables (`context`).

    Raises:
        ValueError: the question cannot be told among the variables, or a list of sources is none.
    """
    variables, response = object_in(row, "vars"), object_in(row, "response")
    key = object_in(object_in(row, "testCase"), "metadata").get("id", variables.get("id"))
    name = text_or_none(key)
    text = _question(variables, question)
    if text is None and name is None:
        names = ", ".join(map(shown, variables)) or "none"
        raise ValueError(f"cannot tell the question among the variables ({names}); name it with `?question=NAME`")
    provider = object_in(row, "provider")
    label = provider.get("label") or provider.get("id") or row.get("provider")
    variant = {"provider": str(label), "prompt": str(row.get("promptIdx", 0))}
    return Result(_fields(variables, response), text, name, _failure(row, response), variant)


def _question(variables: Mapping[str, Any], name: str) -> str | None:
    usual = [each for each in ((name,) if name else TEXT_KEYS) if not is_empty(variables.get(each))]
    only = list(variables) if len(variables) == 1 and not name else []
    return text_or_none(variables[(usual or only)[0]]) if usual or only else None


def _failure(row: Mapping[str, Any], response: Mapping[str, Any]) -> str:
    if is_empty(response.get("error")) and (row.get("failureReason") != FAILED and response.get("output") is not None):
        return ""
    return str(response.get("error") or row.get("error") or "promptfoo recorded no output")


def _fields(variables: Mapping[str, Any], response: Mapping[str, Any]) -> dict[str, Any]:
    output, tokens = response.get("output"), object_in(response, "tokenUsage")
    whole = output if isinstance(output, dict) else {}
    fields = {
        "answer": _answer(output),
        "sources": first_sources(whole, object_in(response, "metadata"), {"context": variables.get("context")}),
        "usage": usage_of(tokens.get("prompt"), tokens.get("completion")),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _answer(output: Any) -> str | None:
    """The text of an output; an object in which no answer can be told is the answer itself, as JSON."""
    if isinstance(output, dict):
        texts = [output[name] for name in ANSWER_KEYS if isinstance(output.get(name), str)]
        return texts[0] if texts else json.dumps(output, ensure_ascii=False)
    if isinstance(output, str):
        return output
    return json.dumps(output, ensure_ascii=False) if isinstance(output, list) else text_or_none(output)
