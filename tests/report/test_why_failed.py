"""Why a question did not pass, of one trial and of several."""

from __future__ import annotations

from typing import Any

import pytest

from evaltrack.evaluation.loop import merge
from evaltrack.records import Question, Response, Row, Source, ToolCall, Verdict
from evaltrack.records.stored_row import StoredRow
from evaltrack.report.templates import say
from evaltrack.report.words import missed_words
from tests.compared import measured

K = 5


def trial(number: int, response: Response, question: dict[str, Any], grade: float | None = None) -> Row:
    asked = Question.model_validate({"id": "q", "question": "?", "domain": "d", "expected_chunks": ["b"], **question})
    verdict = [] if grade is None else [Verdict(judge="j", reasoning=f"Graded {grade}.", overall_score=grade)]
    return measured(asked, response, verdict, trial=number)


FOUND, LOST, NONE = (Response(answer="so", sources=tuple(Source(chunk_id=c) for c in ids)) for ids in ("b", "xy", ""))
UNCALLED = FOUND.model_copy(update={"tool_calls": (ToolCall(name="page"),)})
TOOLS = {"expected_tools": ["search"]}


@pytest.mark.parametrize(
    ("response", "grade", "question", "words"),
    [
        (LOST, None, {}, "not in the first 5: b"),
        (Response(sources=(), abstained=True), None, {}, "declined, but has an answer"),
        (NONE, None, {}, "returned no sources, which counts as declining, but has an answer"),
        (FOUND, None, {"expected_chunks": []}, "answered, but should have declined"),
        (UNCALLED, None, TOOLS, "not called: search"),
        (UNCALLED, 1.0, TOOLS, "not called: search"),
        (UNCALLED, 1.0, TOOLS | {"expected_chunks": None}, "not called: search"),
        (FOUND, 0.25, {}, "judged 0.250: Graded 0.25."),
        (FOUND, 0.25, {"expected_chunks": None}, "judged 0.250: Graded 0.25."),
    ],
)
def test_what_was_expected_and_what_came_instead_is_said(
    response: Response, grade: float | None, question: dict[str, Any], words: str
) -> None:
    made = trial(1, response, question, grade)
    assert made.passed is False
    assert missed_words(made, K) == words


@pytest.mark.parametrize(
    ("trials", "question", "words"),
    [
        ([(LOST, None)] * 3, {}, "passed 0 of 3 trials; the first that failed: not in the first 5: b"),
        ([(FOUND, None), (LOST, None), (LOST, None)], {}, "passed 1 of 3 trials; the first that failed: not in the"),
        ([(NONE, None)] * 2, {}, "passed 0 of 2 trials; the first that failed: returned no sources, which"),
        (
            [(FOUND, 1.0), (FOUND, 0.25), (FOUND, 0.5)],
            {},
            "passed 1 of 3 trials; the first that failed: judged 0.250: Graded 0.25.",
        ),
        ([(LOST, 1.0), (FOUND, 0.25)], {}, "passed 0 of 2 trials; the first that failed: not in the first 5: b"),
        ([(UNCALLED, 1.0)] * 2, TOOLS, "passed 0 of 2 trials; the first that failed: not called: search"),
        (
            [(FOUND, None)] * 2,
            {"expected_chunks": []},
            "passed 0 of 2 trials; the first that failed: answered, but should have declined",
        ),
    ],
)
def test_trials_say_why_the_first_that_failed_did(
    trials: list[tuple[Response, float | None]], question: dict[str, Any], words: str
) -> None:
    made = merge([trial(number, response, question, grade) for number, (response, grade) in enumerate(trials, 1)])
    assert made.passed is False
    assert missed_words(made, K).startswith(words)


def test_trials_on_reasoning_name_the_tier_and_not_the_mean() -> None:
    scores, ended = {"reasoning_score": 61.0}, {"passed": False, "trials": 3, "passes": 1}
    words = say.failed(StoredRow(id="a", scores=scores, tier=0, hard_fails=("HF1",), **ended), K)  # type: ignore[arg-type]
    assert words.startswith("passed 1 of 3 trials; the first that failed: Hard Fail")
    assert words.endswith("; HF1")
    assert "61" not in words


def test_trials_that_passed_and_rows_without_sources_say_no_more() -> None:
    assert say.failed(StoredRow(id="a", passed=True, trials=3, passes=2), K) == "passed 2 of 3 trials"
    unread = StoredRow(id="a", expected=("b",), scores={"hit": 0.0}, passed=False, trials=2, passes=0)
    assert say.failed(unread, K).endswith("the first that failed: not in the first 5: b")


def test_an_empty_answer_is_said_to_be_empty() -> None:
    row = StoredRow(id="a", answer=" ", passed=False, scores={"hit": 1.0, "overall_score": 1.0})
    assert say.failed(row, K) == "the answer is empty"
