from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltrack.metrics import answers
from evaltrack.metrics.answers import (
    NO_ARGUMENTS,
    NO_SOURCES,
    citation_precision,
    citation_recall,
    contains,
    exact_match,
    quotations,
    token_f1,
    tool_arguments,
    tool_order,
)
from evaltrack.records import Question, Response, Source, ToolCall
from tests.files import data

QUESTION = Question(id="1", question="q", domain="d")
SOURCES = (
    Source(chunk_id="setup#1", text="Run the installer, then restart the *whole* machine before you go on."),
    Source(chunk_id="limits 2", text="At most ten clients may be open at once. Each has its own queue."),
    Source(chunk_id="bare", title="No text"),
)


def cited(answer: str) -> list[tuple[str, ...]]:
    return [each.citations for each in quotations(answer, frozenset({"limits 2"}))]


def measured(answer: str | None, sources: tuple[Source, ...] | None = SOURCES) -> tuple[float | str, float | str]:
    response = Response(answer=answer, sources=sources)
    return citation_precision(QUESTION, response), citation_recall(QUESTION, response)


@pytest.mark.parametrize(("answer", "citations", "why"), data("metrics.json")["cited_quotations"])
def test_forms(answer: str, citations: list[list[str]], why: str) -> None:
    assert [list(each) for each in cited(answer)] == citations


@pytest.mark.parametrize(("answer", "precision", "recall", "why"), data("metrics.json")["citations"])
def test_worked_by_hand(answer: str | None, precision: float | str, recall: float | str, why: str) -> None:
    """A name is that of the reason why there is no value."""
    assert measured(answer) == tuple(vars(answers).get(str(each), each) for each in (precision, recall))


def test_sources() -> None:
    answer = '"ten clients may be" [1]'
    assert measured(answer, None) == (NO_SOURCES, NO_SOURCES)
    assert measured(answer, ()) == (0.0, 0.0)
    numbered = (Source(chunk_id="2", text="other words"), Source(chunk_id="1", text="ten clients may be open"))
    assert [measured(f'"ten clients may" [{key}]', numbered) for key in "12"] == [(1.0, 1.0), (0.0, 0.0)]


@pytest.mark.parametrize(("answer", "expected", "exact", "f1", "inside", "why"), data("metrics.json")["compared_words"])
def test_words_worked_by_hand(answer: str, expected: str, exact: float, f1: float, inside: float, why: str) -> None:
    assert exact_match(answer, expected) == exact
    assert token_f1(answer, expected) == pytest.approx(f1, abs=1e-12)
    assert contains(answer, expected) == inside


def order(expected: str, called: str) -> float | str:
    question = Question(id="1", question="q", domain="d", expected_tools=tuple(expected))
    return tool_order(question, Response(tool_calls=tuple(ToolCall(name=name) for name in called)))


@pytest.mark.parametrize(("expected", "called", "value", "why"), data("metrics.json")["tool_orders"])
def test_orders_worked_by_hand(expected: str, called: str, value: float, why: str) -> None:
    assert order(expected, called) == value


Calls = Sequence[tuple[str, dict[str, Any]]]


def arguments(expected: Calls, called: Calls) -> float | str:
    question = Question(
        id="1",
        question="q",
        domain="d",
        expected_tools=tuple(name for name, _ in expected),
        expected_arguments=tuple(given for _, given in expected),
    )
    return tool_arguments(question, Response(tool_calls=tuple(ToolCall(name=n, arguments=a) for n, a in called)))


@pytest.mark.parametrize(("expected", "called", "value", "why"), data("metrics.json")["tool_arguments"])
def test_arguments_worked_by_hand(expected: Calls, called: Calls, value: float, why: str) -> None:
    assert arguments(expected, called) == value


GIVEN = st.dictionaries(st.sampled_from("xyz"), st.integers(0, 1), max_size=3)


@given(st.lists(GIVEN, min_size=1, max_size=4), st.lists(GIVEN, max_size=5))
def test_the_best_assignment_is_chosen(expected: list[dict[str, int]], called: list[dict[str, int]]) -> None:
    wanted = [each for each in expected if each]
    calls: list[dict[str, int] | None] = [*called, *[None] * len(wanted)]
    best = max(
        sum(call is not None and want.items() <= call.items() for want, call in zip(wanted, chosen, strict=False))
        for chosen in permutations(calls, len(wanted))
    )
    value = arguments([("f", each) for each in expected], [("f", each) for each in called])
    assert value == (best / len(wanted) if wanted else NO_ARGUMENTS)


@pytest.mark.parametrize(
    ("piece", "times"),
    [*((mark, 200_000) for mark in ('"', "“", "„", "«", "[", ". ")), ('"a b c" [', 2000), ("“a b c” x. X [1]", 2000)],
)
def test_long_answers_take_no_time(piece: str, times: int) -> None:
    began = time.process_time()
    measured(piece * times)
    assert time.process_time() - began < 5


def test_many_calls_take_no_time() -> None:
    """100,000 calls against 1,000 expected ones: a table of 100,000,000 cells is never made."""
    assert order("ab" * 500, "ba" * 50_000) == 1
