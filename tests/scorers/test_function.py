"""One's own function as a score: what it may return, and what becomes of everything else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from evaltrack.errors import UsageError
from evaltrack.records import OwnScore, OwnValues, Question, Response
from evaltrack.scorers.function import FunctionScorer, read_values

QUESTION = Question(id="1", question="What?", domain="d")
ANSWER = Response(answer="Paris.")
ONE = (OwnScore(name="one", computed_by="m:f", digest=""),)
TWO = (*ONE, OwnScore(name="two", computed_by="m:f", digest=""))
BOOL = (OwnScore(name="one", computed_by="m:f", digest="", binary=True),)


class Unreadable:
    def __float__(self) -> float:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("returned", "value"),
    [(0.5, 0.5), (3, 3.0), (-2, -2.0), (True, 1.0), (False, 0.0), (np.float32(0.5), 0.5), (np.bool_(1), 1.0)],
)
def test_numbers(returned: object, value: float) -> None:
    assert read_values(returned, ONE) == OwnValues(values={"one": value})


@pytest.mark.parametrize(
    ("returned", "why"),
    [
        (None, "the function returned None"),
        ("0.5", "the function returned str; return a number, a bool, a mapping or None"),
        ([1], "the function returned list; return"),
        (float("nan"), "the function returned nan, which is no number"),
        (float("inf"), "the function returned inf"),
        (10**400, "the function returned int; return"),
        (1e16, "the largest score is 1e+15"),
        (Unreadable(), "the function returned Unreadable; return"),
        ({"two": 1}, "names that it does not declare: two; declare the names"),
        ({}, "the function returned no `one`"),
    ],
)
def test_what_is_no_number_is_a_reason(returned: object, why: str) -> None:
    read = read_values(returned, ONE)
    assert not read.values
    assert why in read.reasons["one"]


def test_several_values() -> None:
    """Each by its name; what is missing or None has its own reason, and an undeclared name is a reason for all."""
    assert read_values({"one": 1, "two": None}, TWO) == OwnValues(
        values={"one": 1.0}, reasons={"two": "the function returned None"}
    )
    assert read_values({"one": 1}, TWO).reasons == {"two": "the function returned no `two`"}
    assert read_values({"one": 1, "two": 2, "three": 3}, TWO).reasons.keys() == {"one", "two"}
    assert "not a mapping with one, two" in read_values(1, TWO).reasons["two"]


def test_a_result_annotated_bool_is_one() -> None:
    assert read_values(True, BOOL).values == read_values(np.bool_(1), BOOL).values == {"one": 1.0}
    assert read_values(0.5, BOOL).reasons == {"one": "the function returned float, and its result is annotated bool"}


async def later(question: Question, response: Response) -> float:
    await asyncio.sleep(0)
    return 0.25


def plain(question: Question, response: Response) -> float:
    return 0.25 if response.answer == "Paris." and question.id == "1" else 0.0


def awaitable(question: Question, response: Response) -> Any:
    return later(question, response)


@pytest.mark.parametrize("function", [later, plain, awaitable])
@pytest.mark.parametrize("own_loop", [True, False])
def test_sync_and_async(function: Callable[..., Any], own_loop: bool) -> None:
    scorer = FunctionScorer(function, "m:f", own_loop=own_loop)
    assert asyncio.run(scorer(QUESTION, ANSWER)).values == {function.__name__: 0.25}


def test_it_takes_a_question_and_a_response() -> None:
    with pytest.raises(UsageError, match=r"`m:f` must take \(question, response\)"):
        FunctionScorer(lambda question: 1, "m:f", "x")


def test_builtins_that_tell_nothing_of_their_arguments() -> None:
    scorer = FunctionScorer(max, "builtins:max", "most")
    assert [score.name for score in scorer.declared] == ["most"]
