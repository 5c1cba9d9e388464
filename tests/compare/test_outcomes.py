"""The matrix of questions and runs."""

from __future__ import annotations

from dataclasses import replace

from evaltrack.compare.outcomes import outcome_matrix
from tests.compared import found, question, row, side
from tests.leaderboards import contender, whole_columns


def test_questions_that_differ_stand_first() -> None:
    """Then those that nobody passed, then the others, each in the order of the golden set; counts are of all."""
    frames = [
        *contender("a", [True, False, True, None]).columns,
        *contender("b", [True, False, False, True]).columns,
    ]
    matrix = outcome_matrix(frames, 3)
    assert [(each.id, each.outcomes) for each in matrix.rows] == [
        ("q2", ("pass", "fail")),
        ("q3", ("error", "pass")),
        ("q1", ("fail", "fail")),
    ]
    assert (matrix.num_questions, matrix.num_differing) == (4, 2)
    texts = matrix.with_questions({"q2": "What?"})
    assert [each.question for each in texts.rows] == ["What?", "", ""]
    assert replace(texts.rows[0], question="") == matrix.rows[0]


def test_a_question_that_one_run_was_not_asked_does_not_differ() -> None:
    """It has no outcome there; one that was edited stands there twice."""
    asked = [question("a"), question("b")]
    edited = [question("a"), question("b", question="Another?")]
    frames = [
        whole_columns(side([row(each, found(f"{each.id}!"), place) for place, each in enumerate(asked)])),
        whole_columns(side([row(each, found(f"{each.id}!"), place) for place, each in enumerate(edited)])),
    ]
    matrix = outcome_matrix(frames, 10)
    assert [(each.id, each.outcomes) for each in matrix.rows] == [
        ("a", ("pass", "pass")),
        ("b", ("pass", None)),
        ("b", (None, "pass")),
    ]
    assert matrix.num_differing == 0
    assert outcome_matrix([], 5).rows == ()
