"""Rows of an earlier run: `evaltrack run --output json`, its rows one a line, or `per_question.parquet`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaltrack.golden.exchange.values import is_empty
from evaltrack.records import Source, Usage
from evaltrack.rows.fields import text_digest
from evaltrack.rows.stored_row import JUDGE_ERROR
from evaltrack.targets.results.result import Result, text_or_none

ROW_ONLY = ("finds", "text_digest")
"""Fields of a source in a row that are no part of a response."""


def result_of(row: Mapping[str, Any], question: str = "") -> Result:
    """The response of one row; where the target failed it failed, where only the judge did there is a response."""
    sources, error = row.get("sources"), row.get("error")
    failed = "" if is_empty(error) or str(error).startswith(JUDGE_ERROR) else str(error)
    fields = {
        "answer": row.get("answer"),
        "sources": None if sources is None else [without_row_fields(each) for each in sources],
        "abstained": row.get("abstained"),
        "tool_calls": row.get("tool_calls"),
        "usage": _usage(row),
        "model": row.get("model"),
    }
    said = {name: value for name, value in fields.items() if value is not None}
    trial = {} if row.get("trial") is None else {"trial": str(row["trial"])}
    text = text_or_none(row.get(question or "question"))
    return Result({} if failed else said, text, text_or_none(row.get("id")), failed, trial)


def without_row_fields(source: Any) -> Any:
    """A source of a row as one of a response."""
    if not isinstance(source, Mapping) or not any(name in source for name in ROW_ONLY):
        return source  # a field that is null is read as one that is not there
    return {
        name: value
        for name, value in source.items()
        if name not in ROW_ONLY and (value is not None or name not in Source.model_fields)
    }


def is_cut(row: Mapping[str, Any]) -> bool:
    """Whether the row holds a source without its whole text: rows hold those of the first k, up to a limit."""
    sources = row.get("sources")
    for each in sources if isinstance(sources, list) else ():
        digest, text = (each.get("text_digest"), each.get("text")) if isinstance(each, Mapping) else (None, None)
        if digest and (not isinstance(text, str) or text_digest(text) != digest):
            return True
    return False


def _usage(row: Mapping[str, Any]) -> dict[str, Any] | None:
    usage = {name: row[name] for name in Usage.model_fields if row.get(name) is not None}
    return usage if {"prompt_tokens", "completion_tokens"} <= usage.keys() else None
