"""One's own function as the judge: what it is given, what it may return, and what is refused."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from evaltrack import run_eval
from evaltrack.errors import UsageError
from evaltrack.evaluation.settings import EvaluationConfig
from evaltrack.judges import Models, judge_names, open_judge
from evaltrack.judges.function import FunctionJudge
from evaltrack.records import Question, Response, Source, Verdict
from tests.files import data

QUESTION = Question(id="1", question="What?", domain="d", expected_chunks=("a",), expected_answer="Paris.")
NEGATIVE = Question(id="2", question="What?", domain="d", expected_chunks=())
ANSWER = Response(answer="Paris.", sources=(Source(chunk_id="a"),))
NAME = "mine:judge"
SAID = {"overall_score": 0.85, "reasoning": "Right."}


def ask(function: Callable[..., Any], question: Question = QUESTION) -> Verdict:
    return asyncio.run(FunctionJudge(NAME, function)(question, ANSWER))


def returning(value: object) -> Callable[..., Any]:
    return lambda question, response: value


async def later(question: Question, response: Response) -> Any:
    return SAID


@pytest.mark.parametrize("function", [returning(SAID), later])
def test_functions_are_sync_or_async(function: Callable[..., Any]) -> None:
    assert ask(function) == Verdict(judge=NAME, reasoning="Right.", overall_score=0.85)


@pytest.mark.parametrize(
    "said",
    [
        SAID,
        MappingProxyType(SAID),
        SAID | {"judge": "me"},
        Verdict(judge="me", reasoning="Right.", overall_score=0.85),
        SAID | {"overall_score": np.float64(0.85)},
    ],
)
def test_what_a_function_may_return(said: object) -> None:
    """Whatever name it gives, the judge has its own."""
    assert ask(returning(said)) == Verdict(judge=NAME, reasoning="Right.", overall_score=0.85)


@pytest.mark.parametrize("value", [None, 0.5, "good", [0.5], True, Verdict])
def test_what_is_no_verdict(value: object) -> None:
    message = f"^the judge returned {type(value).__name__}; return a Verdict or its fields$"
    with pytest.raises(TypeError, match=message):
        ask(returning(value))


@pytest.mark.parametrize(("value", "said"), data("judge_replies.json")["bad_fields"])
def test_fields_that_are_no_verdict(value: str, said: str) -> None:
    with pytest.raises(ValueError, match=f"^the judge returned an invalid verdict: {re.escape(said)}") as raised:
        ask(returning(eval(value)))
    assert "pydantic" not in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("value", "question", "lacks"),
    [
        ({}, QUESTION, "overall_score"),
        ({"accuracy": 1.0, "declined": True}, QUESTION, "overall_score"),
        (Verdict(judge="j", reasoning="Good."), QUESTION, "overall_score"),
        ({"overall_score": 1.0}, NEGATIVE, "declined"),
    ],
)
def test_a_verdict_that_does_not_decide(value: object, question: Question, lacks: str) -> None:
    with pytest.raises(ValueError, match=f"^the judge returned no `{lacks}`$"):
        ask(returning(value), question)
    assert ask(returning({"declined": False}), NEGATIVE).declined is False


@pytest.mark.parametrize(("name", "said"), data("judge_replies.json")["judges_that_there_are_not"])
def test_a_judge_that_there_is_not(name: str, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        open_judge(name.split("`")[1], models=Models(1), cache=None)
    assert str(raised.value).startswith((f"{name}: {said}", f"{name}; {said}"))


def test_a_function_takes_a_question_and_a_response() -> None:
    """Further arguments may have defaults."""
    wrong = (lambda: 1, lambda question: 1, lambda q, r, more: 1, lambda q, *, response: 1, lambda **all: 1)
    for function in wrong:
        with pytest.raises(UsageError, match=f"^judge `{NAME}`: must take \\(question, response\\)$"):
            FunctionJudge(NAME, function)
    for function in (lambda q, r, strict=True: SAID, lambda *all: SAID, lambda q, r, /, *, a=1, **b: SAID):
        assert ask(function)


def test_a_function_itself_is_a_judge(store_uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVALTRACK_STATE_DIR", str(tmp_path / "state"))
    seen: list[str] = []
    grades = {"accuracy": 0.5, "completeness": 0.5, "relevance": 0.5, "overall_score": 0.5}

    def strict(question: Question, response: Response) -> dict[str, float]:
        seen.append(question.id)
        return grades

    async def mild(question: Question, response: Response) -> dict[str, float]:
        return dict.fromkeys(grades, 1.0)

    own = f"{__name__}:{test_a_function_itself_is_a_judge.__qualname__}.<locals>."
    golden = [{"question": "first?", "expected_answer": "A"}]
    settings: Any = {"target": lambda question: "A", "tracking_uri": store_uri, "verdict_cache": False}
    alone = run_eval(golden, judge=strict, **settings)
    panel = run_eval(golden, judge=[strict, mild], **settings)

    assert (alone.data["judge_score"], alone.signature.judge) == (0.5, f"{own}strict")
    assert (panel.data["judge_score"], panel.signature.judge) == (0.75, f"{own}strict+{own}mild")
    assert seen == ["1", "1"]


def test_functions_are_told_apart_by_their_names() -> None:
    one, two = (lambda question, response: {} for _ in range(2))
    with pytest.raises(UsageError, match=r"two functions are called .*<lambda>`; give each a name of its own"):
        run_eval([{"question": "q", "expected_answer": "A"}], target=str, judge=[one, two])
    with pytest.raises(UsageError, match="the same judge is named twice"):
        run_eval([{"question": "q", "expected_answer": "A"}], target=str, judge=[one, one])
    with pytest.raises(UsageError, match=r"must take \(question, response\)"):
        run_eval([{"question": "q", "expected_answer": "A"}], target=str, judge=lambda question: {})
    for wrong in (5, [5]):
        with pytest.raises(UsageError, match=r"judge must be one or more strings, not "):
            run_eval([{"question": "q"}], target=str, judge=wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("names", "asked"),
    [
        ((), []),
        (("none",), []),
        (("openai",), ["openai:gpt-4o-mini"]),
        (("openai:m", "recorded:a"), ["openai:m", "recorded:a"]),
    ],
)
def test_nobody_judges_unless_named(monkeypatch: pytest.MonkeyPatch, names: tuple[str, ...], asked: list[str]) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-1")
    assert judge_names(names) == asked
    assert EvaluationConfig().judge == ("none",)
