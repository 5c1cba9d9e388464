"""Context precision as a score: the first k of the run, and why it is not measured."""

from __future__ import annotations

import asyncio

from evaltrack.metrics.measure import NEGATIVE, NO_SOURCES
from evaltrack.records import Question, Response, Source
from evaltrack.scorers.opening import open_scorers


def measured(question: Question, ids: str | None, k: int = 5) -> float | str:
    (scorer,) = open_scorers(["order=context_precision"], in_process=True, k=k)
    sources = None if ids is None else tuple(Source(chunk_id=each) for each in ids)
    found = asyncio.run(scorer(question, Response(sources=sources)))
    return found.values.get("order", found.reasons.get("order", ""))


def test_values() -> None:
    """Repeats are dropped before the list is cut at k; an empty list was measured."""
    question = Question(id="1", question="q", domain="d", expected_chunks=("a", "b", "c"))
    assert measured(question, "axb") == (1 + 2 / 3) / 2
    assert measured(question, "aaxb", k=2) == 1.0
    assert measured(question, "xxb", k=2) == 0.5
    assert measured(question, "") == 0.0


def test_reasons() -> None:
    question = Question(id="1", question="q", domain="d", expected_chunks=())
    assert measured(question, "a") == NEGATIVE
    assert measured(question.model_copy(update={"expected_chunks": ("a",)}), None) == NO_SOURCES
