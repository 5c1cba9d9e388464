"""Ragas: an evaluation as `to_pandas` gives it, saved as CSV, JSON Lines, JSON or Parquet, of versions since 0.1."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evaltrack.golden.exchange.values import is_empty, parsed, text_in
from evaltrack.targets.results.result import Result, first_sources, text_or_none

QUESTIONS, ANSWERS = ("user_input", "question"), ("response", "answer")


def result_of(row: Mapping[str, Any], question: str = "") -> Result:
    """One sample: the texts that were retrieved, with `retrieved_context_ids` where these are given too.

    Raises:
        ValueError: it has no question, or a list of sources is none.
    """
    asked = _first(row, (question,) if question else QUESTIONS)
    if isinstance(asked, str) and asked.lstrip().startswith("[{"):
        asked = parsed(asked)
    text = None if asked is None else text_in(asked)[0]
    key = text_or_none(row.get("id"))
    if text is None and key is None:
        raise ValueError(f"has no `{question or QUESTIONS[0]}`; name the column of the question with `?question=NAME`")
    answer, sources = text_or_none(_first(row, ANSWERS)), first_sources(row)
    failure = "" if answer is not None or sources is not None else "Ragas recorded neither response nor contexts"
    fields = {"answer": answer, "sources": sources}
    return Result({name: value for name, value in fields.items() if value is not None}, text, key, failure)


def _first(row: Mapping[str, Any], names: tuple[str, ...]) -> Any:
    return next((row[name] for name in names if not is_empty(row.get(name))), None)
