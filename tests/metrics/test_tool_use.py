from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltrack.metrics.tool_use import NO_ARGUMENTS, NO_TOOLS, common_subsequence, tool_arguments, tool_order
from evaltrack.records import Question, Response, ToolCall

NAMES = st.lists(st.sampled_from("abcd"), max_size=12)


def order(expected: str, called: str) -> float | str:
    question = Question(id="1", question="q", domain="d", expected_tools=tuple(expected))
    return tool_order(question, Response(tool_calls=tuple(ToolCall(name=name) for name in called)))


@pytest.mark.parametrize(
    ("expected", "called", "value"),
    [
        ("abc", "abc", 1.0),
        ("abc", "xaxbxcx", 1.0),  # calls in between cost nothing
        ("abc", "cba", 1 / 3),
        ("abc", "acb", 2 / 3),
        ("ab", "b", 0.5),
        ("aba", "ab", 2 / 3),  # a tool that is expected twice is called twice
        ("aa", "a", 0.5),
        ("a", "", 0.0),
        ("a", "b", 0.0),
    ],
)
def test_worked_by_hand(expected: str, called: str, value: float) -> None:
    assert order(expected, called) == value


def test_a_question_without_tools_is_not_measured() -> None:
    assert order("", "abc") == NO_TOOLS


@given(NAMES, NAMES)
def test_the_bits_count_as_the_table_does(expected: list[str], called: list[str]) -> None:
    table = [[0] * (len(called) + 1) for _ in range(len(expected) + 1)]
    for i, one in enumerate(expected, start=1):
        for j, other in enumerate(called, start=1):
            table[i][j] = table[i - 1][j - 1] + 1 if one == other else max(table[i - 1][j], table[i][j - 1])
    assert common_subsequence(expected, called) == table[-1][-1]


def test_many_calls_take_no_time() -> None:
    """100,000 calls against 1,000 expected ones: a table of 100,000,000 cells is never made."""
    assert common_subsequence(["a", "b"] * 500, ["b", "a"] * 50_000) == 1000


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


@pytest.mark.parametrize(
    ("expected", "called", "value"),
    [
        ([("f", {"x": 1})], [("f", {"x": 1})], 1.0),
        ([("f", {"x": 1})], [("f", {"x": 1.0, "y": 2})], 1.0),  # further arguments cost nothing
        ([("f", {"x": 1})], [("g", {"x": 1})], 0.0),
        ([("f", {"x": 1})], [("f", {"x": True})], 0.0),
        ([("f", {"x": 1})], [("f", {"x": "1"})], 0.0),
        ([("f", {"x": "Kea"})], [("f", {"x": "kea"})], 0.0),
        ([("f", {"x": None})], [("f", {})], 0.0),
        ([("f", {"x": {"b": [1, 2.0], "a": 0}})], [("f", {"x": {"a": 0.0, "b": [1, 2]}})], 1.0),
        ([("f", {"x": [1, 2]})], [("f", {"x": [2, 1]})], 0.0),
        ([("f", {"x": 1})], [], 0.0),
        ([("f", {"x": 1}), ("f", {"x": 1})], [("f", {"x": 1})], 0.5),  # expected twice, called once
        ([("f", {"x": 1}), ("f", {"x": 1})], [("f", {"x": 1}), ("g", {}), ("f", {"x": 1})], 1.0),
        ([("f", {"x": 1}), ("f", {"x": 1, "y": 2})], [("f", {"x": 1, "y": 2}), ("f", {"x": 1})], 1.0),
        ([("f", {"x": 1}), ("f", {"x": 1, "y": 2})], [("f", {"x": 1, "y": 2})], 0.5),
        ([("g", {}), ("f", {"x": 1})], [("f", {"x": 1})], 1.0),  # of g nothing is said
        ([("search", {}), ("page", {"t": "Kea"}), ("page", {"t": "Kaka", "n": 5})],
         [("search", {"q": "kea"}), ("page", {"t": "Kaka", "n": 5, "c": True}), ("page", {"t": "kea"})], 0.5),
    ],
)  # fmt: skip
def test_arguments_worked_by_hand(expected: Calls, called: Calls, value: float) -> None:
    assert arguments(expected, called) == value


def test_without_expected_arguments_there_is_no_value() -> None:
    assert arguments([("f", {})], [("f", {"x": 1})]) == arguments([], []) == NO_ARGUMENTS


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


def test_many_calls_with_arguments_take_no_time() -> None:
    """100,000 calls against 500 expected ones, of which each could be any of them."""
    expected = [("f", {"x": 1, "y": n % 3}) for n in range(500)]
    assert arguments(expected, [("f", {"x": 1, "y": n % 3, "n": n}) for n in range(100_000)]) == 1.0
