"""Reading verdicts to the letter, whoever gave them: nothing is converted, guessed or passed over in silence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from evaltrack.records import Verdict

SHOWN = 4
"""Findings named of one text."""


def object_in(text: str) -> str:
    """The JSON object in what a model wrote; thoughts before it, text around it and a fence are passed over.

    Raises:
        ValueError: there is none.
    """
    start = 0
    while (thought := text.find("<think>", start)) >= 0 and "{" not in text[start:thought]:
        end = text.find("</think>", thought)
        if end < 0:
            raise ValueError("there is no JSON object, only a thought that does not end")
        start = end + len("</think>")
    start, end = text.find("{", start), text.rfind("}")
    if start < 0 or end < start:
        raise ValueError("there is no JSON object")
    return text[start : end + 1]


def findings(error: ValidationError) -> str:
    """What is wrong, each as ``place: what``, without the library's address and without the values."""
    problems = [f"{'.'.join(map(str, e['loc'])) or 'JSON'}: {e['msg']}" for e in error.errors(include_url=False)]
    return "; ".join(problems[:SHOWN])


def read_verdict(fields: Mapping[Any, Any]) -> Verdict:
    """The verdict with these fields: a number is a number, not `true` and not text; true and false are no words.

    Raises:
        ValidationError: a field is missing, unknown, of another type or off its scale.
    """
    return Verdict.model_validate(_frozen(fields), strict=True)


def _frozen(value: Any) -> Any:
    """The value with tuples for lists and dicts for other mappings: that much may differ."""
    if isinstance(value, Mapping):
        return {name: _frozen(item) for name, item in value.items()}
    return tuple(_frozen(item) for item in value) if isinstance(value, list | tuple) else value
