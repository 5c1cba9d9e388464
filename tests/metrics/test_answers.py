from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltrack.metrics.answers import (
    NO_ARGUMENTS,
    contains,
    exact_match,
    token_f1,
    tool_arguments,
    tool_order,
)
from evaltrack.records import Question, Response, ToolCall
from tests.files import data


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


def test_many_calls_take_no_time() -> None:
    """100,000 calls against 1,000 expected ones: a table of 100,000,000 cells is never made."""
    assert order("ab" * 500, "ba" * 50_000) == 1
