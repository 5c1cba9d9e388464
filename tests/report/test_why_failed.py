"""Why a question did not pass, of one trial and of several."""

from __future__ import annotations

from typing import Any

from evaltrack.evaluation.loop import merge
from evaltrack.records import Question, Response, Row, Source, ToolCall, Verdict
from evaltrack.report.templates import say
from tests.compared import measured
from tests.files import check_rendering

K = 5


def trial(response: Response, grade: float | None = None, number: int = 1, **question: Any) -> Row:
    asked = Question.model_validate({"id": "q", "question": "?", "domain": "d", "expected_chunks": ["b"], **question})
    verdict = [] if grade is None else [Verdict(judge="j", reasoning=f"Graded {grade}.", overall_score=grade)]
    return measured(asked, response, verdict, trial=number)


def trials(*given: tuple[Response, float | None], **question: Any) -> Row:
    return merge([trial(*each, number, **question) for number, each in enumerate(given, 1)])


FOUND, LOST, NONE = (Response(answer="so", sources=tuple(Source(chunk_id=c) for c in ids)) for ids in ("b", "xy", ""))
UNCALLED = FOUND.model_copy(update={"tool_calls": (ToolCall(name="page"),)})
TOOLS = {"expected_tools": ["search"]}
ROWS: dict[str, Row] = {
    "not found": trial(LOST),
    "declined": trial(Response(sources=(), abstained=True)),
    "no sources": trial(NONE),
    "a negative was answered": trial(FOUND, expected_chunks=[]),
    "a tool was not called": trial(UNCALLED, **TOOLS),
    "a tool was not called, and the answer is right": trial(UNCALLED, 1.0, **TOOLS),
    "a tool was not called, and no source is expected": trial(UNCALLED, 1.0, **TOOLS, expected_chunks=None),
    "judged too low": trial(FOUND, 0.25),
    "judged too low, and no source is expected": trial(FOUND, 0.25, expected_chunks=None),
    "never found": trials(*[(LOST, None)] * 3),
    "found once": trials((FOUND, None), (LOST, None), (LOST, None)),
    "never a source": trials(*[(NONE, None)] * 2),
    "judged too low twice": trials((FOUND, 1.0), (FOUND, 0.25), (FOUND, 0.5)),
    "not found, then judged too low": trials((LOST, 1.0), (FOUND, 0.25)),
    "a tool was never called": trials(*[(UNCALLED, 1.0)] * 2, **TOOLS),
    "a negative was always answered": trials(*[(FOUND, None)] * 2, expected_chunks=[]),
}
STORED = {
    "a hard fail in the first of three trials": {"tier": 0, "hard_fails": ("HF1",), "trials": 3, "passes": 1}
    | {"scores": {"reasoning_score": 61.0}},
    "trials that passed": {"passed": True, "trials": 3, "passes": 2},
    "sources that were not read": {"expected": ("b",), "scores": {"hit": 0.0}, "trials": 2, "passes": 0},
    "an empty answer": {"answer": " ", "scores": {"hit": 1.0, "overall_score": 1.0}},
}


def test_why_a_question_did_not_pass_is_rendered_to_the_letter() -> None:
    """Of several trials the first that failed is told, and a tier instead of a mean."""
    assert {row.passed for row in ROWS.values()} == {False}
    words = {name: say.failed(row, K) for name, row in ROWS.items()}
    words |= {name: say.failed(Row(**{"id": "a", "passed": False, **each}), K) for name, each in STORED.items()}
    check_rendering("why-failed.txt", "".join(f"{name}: {text}\n" for name, text in words.items()))
