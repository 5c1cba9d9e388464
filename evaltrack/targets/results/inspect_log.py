"""Inspect: the samples of an evaluation log, a `.eval` file or JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from evaltrack.golden.exchange.values import is_empty, text_in
from evaltrack.targets.results.result import Result, first_sources, object_in, text_or_none, usage_of

ATTACHMENT = "attachment://"
"""Begins a text that stands in the sample's `attachments`."""


def result_of(row: Mapping[str, Any], question: str = "") -> Result:
    """One sample in one epoch; a sample with an `error`, or without an output, is a failure.

    What was retrieved is looked for in the metadata and the store of the sample. Tokens are those of the model that
    answered.

    Raises:
        ValueError: the input holds no text, or a list of sources is none.
    """
    attached = object_in(row, "attachments")
    text = _attached(text_in(_parts_joined(row.get("input")), question)[0], attached)
    output = object_in(row, "output")
    answer = _answer(output, attached)
    failure = _failure(row) or ("" if answer is not None else "Inspect recorded no output of a model")
    fields = {
        "answer": answer,
        "sources": first_sources(object_in(row, "metadata"), object_in(row, "store")),
        "usage": _usage(object_in(row, "model_usage").get(str(output.get("model"))) or output.get("usage")),
        "tool_calls": list(_tool_calls(row)),
        "model": text_or_none(output.get("model")),
    }
    said = {name: value for name, value in fields.items() if value is not None}
    return Result(said, text, text_or_none(row.get("id")), failure, {"epoch": str(row.get("epoch", 1))})


def _attached(text: str, attachments: Mapping[str, Any]) -> str:
    value = attachments.get(text.removeprefix(ATTACHMENT)) if text.startswith(ATTACHMENT) else None
    return value if isinstance(value, str) else text


def _answer(output: Mapping[str, Any], attachments: Mapping[str, Any]) -> str | None:
    if not output.get("choices") and is_empty(output.get("completion")):
        return None
    completion = output.get("completion")
    return _attached(completion, attachments) if isinstance(completion, str) else ""


def _failure(row: Mapping[str, Any]) -> str:
    error = row.get("error")
    if error is None:
        return ""
    return str(error.get("message") if isinstance(error, dict) else error) or "Inspect recorded an error"


def _parts_joined(messages: Any) -> Any:
    """Chat messages whose content is a list of parts, with the texts of these."""
    if not isinstance(messages, list):
        return messages
    return [
        {**each, "content": _joined(each["content"])}
        if isinstance(each, dict) and isinstance(each.get("content"), list)
        else each
        for each in messages
    ]


def _joined(parts: list[Any]) -> str:
    return "\n".join(str(part["text"]) for part in parts if isinstance(part, dict) and "text" in part)


def _usage(usage: Any) -> dict[str, int] | None:
    """The total is that of input, cached or not, and output."""
    if not isinstance(usage, dict):
        return None
    total, completion = usage.get("total_tokens"), usage.get("output_tokens")
    if isinstance(total, int) and isinstance(completion, int) and total >= completion:
        return usage_of(total - completion, completion)
    return usage_of(usage.get("input_tokens"), completion)


def _tool_calls(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    messages = row.get("messages")
    for message in messages if isinstance(messages, list) else ():
        calls = message.get("tool_calls") if isinstance(message, dict) else None
        for call in calls if isinstance(calls, list) else ():
            if isinstance(call, dict) and isinstance(call.get("function"), str):
                arguments = call.get("arguments")
                yield {"name": call["function"], "arguments": arguments if isinstance(arguments, dict) else {}}
