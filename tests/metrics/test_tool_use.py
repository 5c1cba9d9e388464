"""The order of tool calls, against values worked by hand and against the textbook's table of the subsequence."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaltrack.metrics.tool_use import NO_TOOLS, common_subsequence, tool_order
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
    """The longest common subsequence of names over the expected names."""
    assert order(expected, called) == value


def test_a_question_without_tools_is_not_measured() -> None:
    """Calls that nobody expects are no fault and no merit."""
    assert order("", "abc") == NO_TOOLS


@given(NAMES, NAMES)
def test_the_bits_count_as_the_table_does(expected: list[str], called: list[str]) -> None:
    """The length is that of the table that Wagner and Fischer fill."""
    table = [[0] * (len(called) + 1) for _ in range(len(expected) + 1)]
    for i, one in enumerate(expected, start=1):
        for j, other in enumerate(called, start=1):
            table[i][j] = table[i - 1][j - 1] + 1 if one == other else max(table[i - 1][j], table[i][j - 1])
    assert common_subsequence(expected, called) == table[-1][-1]


def test_many_calls_take_no_time() -> None:
    """100,000 calls against 1,000 expected ones: a table of 100,000,000 cells is never made."""
    assert common_subsequence(["a", "b"] * 500, ["b", "a"] * 50_000) == 1000
