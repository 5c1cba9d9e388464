"""Which tool wrote a file of results: by the columns or keys of its first rows, which no other tool has together."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

from evaltrack.errors import UsageError
from evaltrack.records import Response
from evaltrack.targets.recorded_response import ANSWERS, NO_RESPONSE, error_text
from evaltrack.targets.results import deepeval, inspect_log, own_rows, promptfoo, ragas
from evaltrack.targets.results.result import Result, text_or_none

LINES, TREC = "lines", "trec"
"""Our own form, one response a line, and TREC runs."""

READERS: Mapping[str, Callable[[Mapping[str, Any], str], Result]] = {
    "promptfoo": promptfoo.result_of,
    "inspect": inspect_log.result_of,
    "ragas": ragas.result_of,
    "deepeval": deepeval.result_of,
    "rows": own_rows.result_of,
    LINES: lambda row, _: _response(row),
}
"""Reads one row of each format as a `Result`, with the name that the user gave for the question."""

FORMATS = (*READERS, TREC)

_RESPONSE_KEYS = frozenset({"id", "error", *Response.model_fields}) - {"seconds"}


def shown_formats(names: Collection[str]) -> list[str]:
    """The formats that rows with these columns or keys can be of."""
    keys = set(names)
    shows = {
        "promptfoo": {"vars", "testCase"} <= keys,
        "inspect": {"input", "output", "epoch"} <= keys,
        "ragas": ("user_input" in keys and bool(keys & {"response", "retrieved_contexts"}))
        or {"question", "answer", "contexts"} <= keys,
        "deepeval": "input" in keys and bool(keys & {"actualOutput", "actual_output", "metricsData"}),
        "rows": {"question", "retrieval_digest", "position"} <= keys,
        LINES: "id" in keys and len(keys) > 1 and keys <= _RESPONSE_KEYS,
    }
    return [name for name, is_shown in shows.items() if is_shown]


def only_format(path: Path, names: Collection[str]) -> str:
    """The one format that these columns show.

    Raises:
        UsageError: none does, or several do; the message names them and the setting that chooses.
    """
    shown = shown_formats(names)
    if len(shown) == 1:
        return shown[0]
    why = f"may be of {' or '.join(shown)}" if shown else "does not show which tool wrote it"
    formats = ", ".join(shown or FORMATS)
    raise UsageError(f"recorded target {path}: its content {why}; choose with `?format=NAME`: {formats}")


def _response(row: Mapping[str, Any]) -> Result:
    """A response in our own form, with the id of its question."""
    key = text_or_none(row.get("id"))
    if key is None:
        raise ValueError("`id` is missing; name the question that was answered")
    if failure := row.get("error"):
        return Result(id=key, failure=error_text(failure))
    if all(row.get(name) is None for name in ANSWERS):
        raise ValueError(NO_RESPONSE)
    return Result({name: value for name, value in row.items() if name not in ("id", "error")}, id=key)
