"""DeepEval: the test cases of a test run, as it saves them (JSON), or of a dataset (`actual_output`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evaltrack.golden.exchange.values import is_empty, parsed
from evaltrack.targets.results.result import Result, object_in, sources_of, text_or_none, usage_of

JOINT = "|"
"""Stands between the texts in one cell of a CSV."""


def result_of(row: Mapping[str, Any], question: str = "") -> Result:
    """One test case; a metric that failed is no failure of what was tested.

    Raises:
        ValueError: it has no input, or a list of sources is none.
    """
    text = text_or_none(_either(row, question or "input"))
    metadata = object_in(row, "metadata") or object_in(row, "additional_metadata")
    key = text_or_none(metadata.get("id"))
    if text is None:
        raise ValueError(f"has no `{question or 'input'}`; a test case of several turns is no single question")
    answer, sources = text_or_none(_either(row, "actual_output")), _sources(_either(row, "retrieval_context"))
    fields = {
        "answer": answer,
        "sources": sources,
        "tool_calls": list(_tool_calls(_either(row, "tools_called"))),
        "usage": usage_of(_either(row, "input_token_count"), _either(row, "output_token_count")),
    }
    failure = "" if answer is not None or sources is not None else "DeepEval recorded no actual output"
    return Result({name: value for name, value in fields.items() if value is not None}, text, key, failure)


def _either(row: Mapping[str, Any], name: str) -> Any:
    """A value under its name in Python, or under that of a test run (`actualOutput`)."""
    first, *others = name.split("_")
    value = row.get(name, row.get(first + "".join(map(str.title, others))))
    return None if is_empty(value) else value


def _sources(value: Any) -> list[Any] | None:
    if isinstance(value, str) and not value.lstrip().startswith("["):
        value = value.split(JOINT)
    return None if value is None else sources_of("retrieval_context", value)


def _tool_calls(value: Any) -> Iterator[dict[str, Any]]:
    calls = parsed(value) if isinstance(value, str) and value.lstrip().startswith("[") else value
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, dict) and isinstance(call.get("name"), str):
            arguments = _either(call, "input_parameters")
            yield {"name": call["name"], "arguments": arguments if isinstance(arguments, dict) else {}}
